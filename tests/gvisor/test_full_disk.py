"""The console's own disk is full: what it cannot follow does not go on unseen."""

from pathlib import Path

from tests.gvisor.served import Served, until


def test_a_command_whose_output_cannot_be_kept_is_stopped_and_the_cause_is_named(tmp_path: Path) -> None:
    served = Served(tmp_path / "var").up()
    try:
        with served.api("workspace") as api:
            sandbox = api.post("/sandboxes", json={"network": "none"}).raise_for_status().json()["id"]
            commands = f"/sandboxes/{sandbox}/commands"
            (served.var / "outputs").touch()  # nothing can be written below a file
            answer = api.post(commands, json={"command": "while echo to-be-lost; do sleep 0.1; done"})
            assert (answer.status_code, answer.json()["code"]) == (409, "outcome_unknown"), answer.text
            assert "Not a directory" in answer.json()["detail"]
            assert "so it was stopped" in answer.json()["detail"]
            nothing_left = {"argv": ["sh", "-c", "! pgrep -f 'to-be-[l]ost' > /dev/null"]}
            until(lambda: api.post(commands, json=nothing_left).raise_for_status().json()["exit_code"] == 0)
            (row,) = (each for each in api.get(commands).json()["items"] if each["status"] == "lost")
            assert row["left_running"] == []
    finally:
        served.close()
