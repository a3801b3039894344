"""What a door leaves to be done once its answer is out is done for a client that was there, and for no other."""

import time


def given(served):
    return served.get("/seen").get("given", 0)


def test_done_after_the_answer_even_when_the_client_closes_at_once(served):
    before = given(served)
    with served.connect() as client:
        client.send("GET /given/1 HTTP/1.1")
        client.read_until(b"\r\n0\r\n\r\n")
    served.seen("given", at_least=before + 1)


def test_not_done_for_a_client_that_left_before_the_answer(served):
    before = given(served)
    with served.connect() as client:
        client.send("GET /given/1 HTTP/1.1")
        time.sleep(0.1)
    time.sleep(0.8)
    assert given(served) == before


def test_not_done_for_a_client_that_left_in_the_middle_of_the_answer(served):
    before = given(served)
    with served.connect() as client:
        client.send("GET /given/100 HTTP/1.1")
        client.read_until(b"\r\n\r\n")
    time.sleep(0.8)
    assert given(served) == before
