"""Faults that sandboxes are known to have, and the tests that show that this one has not got them.

A case is an id and what must hold; below it stand the tests, or why it cannot occur here. `tests/setup/test_cases.py`
sees to it that every test named here exists.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

TABLE = """
Commands and timeouts
A2 a command of more than a minute is cut by no layer
    gvisor/test_long::test_more_than_a_minute_is_cut_by_nobody
A3 a sandbox that dies under a command tells its caller
    gvisor/test_loss::test_killed_from_outside
    gvisor/test_crashes::test_a_sandbox_killed_under_a_command_tells_its_caller_at_once
A5 stdin that was not given is at its end
    gvisor/test_commands::test_stdin_is_empty_unless_given
A6 a heredoc keeps its bytes
    gvisor/test_commands::test_heredoc_keeps_exact_bytes
A10 what was printed before a timeout is kept
    gvisor/test_commands::test_timeout_kills_the_tree_and_keeps_what_was_printed
A11 a restarted server has the end and all output
    gvisor/test_crashes::test_killed_while_running_nothing_is_run_again_and_no_output_is_lost
    gvisor/test_stop::test_a_killed_server_finds_its_commands_again
A12 times that mean nothing are refused
    sandboxes/test_toolsets::test_a_timeout_that_means_nothing_is_refused
    sandboxes/test_profiles::test_what_is_below_the_least_is_not_acceptable
    api/test_background::test_a_timeout_has_its_limits
A14 long scripts and contents are no arguments
    gvisor/test_long::test_a_command_may_be_long_and_a_file_longer_than_an_argument
    gvisor/test_commands::test_long_script_runs_like_a_short_one
    gvisor/test_files::test_bytes_come_back_as_they_went
A17 a call to a sandbox that was deleted is answered
    gvisor/test_long::test_ten_deletes_at_once_have_one_effect_and_no_fault
    gvisor/test_loss::test_removal_tells_the_callers_why
A18 a timeout is told as one
    gvisor/test_sdk::test_how_commands_end
    gvisor/test_stop::test_each_way_to_end_has_its_status
A19 a flaky client loses and repeats nothing
    gvisor/test_stop::test_events_are_whole_and_go_on_where_a_client_was_cut_off

Process trees
B1 a stop reaches the whole tree
    gvisor/test_stop::test_stop_ends_the_whole_tree_and_a_second_stop_says_that_it_has_ended
    gvisor/test_commands::test_stop_ends_the_whole_tree_and_says_when_it_is_empty
B3 stopped means gone; a second stop says so
    gvisor/test_stop::test_stop_ends_the_whole_tree_and_a_second_stop_says_that_it_has_ended
B4 what has ended or never began is not running
    gvisor/test_stop::test_each_way_to_end_has_its_status
    gvisor/test_background::test_what_cannot_begin_says_why_and_leaves_nothing
B5 no zombies, no lost exit codes
    gvisor/test_commands::test_100_short_ones_leave_nothing_behind
    gvisor/test_limits::test_commands_leave_nothing_behind
B7 nothing of a command is left after its timeout
    gvisor/test_commands::test_timeout_kills_the_tree_and_keeps_what_was_printed
    gvisor/test_commands::test_tree_that_forks_while_it_is_killed_is_killed
B8 who leaves ends nothing in the background
    gvisor/test_stop::test_a_client_that_leaves_takes_no_command_with_it
B9 a cut request ends nothing in the background
    gvisor/test_stop::test_a_client_that_leaves_takes_no_command_with_it
B10 memory that runs out takes the command, not the sandbox's answers
    gvisor/test_limits::test_a_memory_hog_ends_and_says_why
    gvisor/test_walls::test_memory_hog_is_told_as_out_of_memory
B11 a quiet command is kept
    gvisor/test_long::test_a_command_that_says_nothing_keeps_its_sandbox_past_the_idle_time
    sandboxes/test_overdue::test_a_command_that_runs_is_activity_however_long_it_says_nothing
B12 a start anew has the variables again
    gvisor/test_persistent::test_idle_it_is_stopped_and_the_next_call_finds_files_and_variables

Output
C1 no character is cut in two
    gvisor/test_stop::test_events_keep_characters_whole_and_bytes_as_they_are
    api/test_sandboxes::test_half_a_character_waits_for_its_rest_while_the_command_runs
C2 output that nobody reads is bounded
    gvisor/test_stop::test_a_flood_that_nobody_reads_is_bounded
    gvisor/test_commands::test_sink_that_stops_neither_blocks_the_command_nor_the_server
C3 over the limit both ends are kept, counted and marked
    gvisor/test_sdk::test_output_beyond_the_limit_is_its_two_ends
    gvisor/test_limits::test_output_without_end_is_counted_and_costs_no_memory
C5 blank lines stay
    gvisor/test_long::test_blank_lines_and_odd_bytes_come_as_they_were_printed
C6 a lost channel is never an exit 0
    gvisor/test_loss::test_killed_from_outside
    gvisor/test_daemon_restart::test_long_absence_is_told_in_time_and_the_command_is_found_again
    engine/test_hostile_runner::test_hanging_up_when_it_is_dead_is_the_end
C8 a terminal shows all of it
    not here: Commands run without a terminal; there is none to ask for.
C9 short commands never come back empty
    gvisor/test_background::test_a_thousand_short_ones_each_say_what_they_have_to_say
    gvisor/test_long::test_what_printed_for_a_minute_without_a_listener_is_whole_and_can_be_read_from_any_place
C10 no timeout of a client of Docker's ends a command
    gvisor/test_long::test_more_than_a_minute_is_cut_by_nobody
C11 NUL bytes come through
    gvisor/test_long::test_blank_lines_and_odd_bytes_come_as_they_were_printed
C13 a command nobody followed is read from any offset
    gvisor/test_long::test_what_printed_for_a_minute_without_a_listener_is_whole_and_can_be_read_from_any_place
    gvisor/test_stop::test_events_are_whole_and_go_on_where_a_client_was_cut_off
C17 events come whole
    gvisor/test_stop::test_events_are_whole_and_go_on_where_a_client_was_cut_off
C19 a call ends with output or a reason
    gvisor/test_stop::test_each_way_to_end_has_its_status
    gvisor/test_commands::test_a_program_that_is_missing_says_so

Files and paths
D1 any size comes back the same
    gvisor/test_files::test_bytes_come_back_as_they_went
    gvisor/test_raw_files::test_large_files_stream_both_ways_in_little_memory_and_no_disk
D2 an empty file is a file
    gvisor/test_raw_files::test_bytes_come_back_as_they_went
    gvisor/test_artifacts::test_an_empty_one_and_an_odd_name
D3 too large is refused before it comes
    gvisor/test_raw_files::test_too_large_is_refused_before_and_while_it_comes
    gvisor/test_sdk::test_a_file_of_fifty_mebibytes
D6 an edit keeps all other bytes
    engine/test_edits::test_lines_that_no_edit_names_keep_their_bytes
    gvisor/test_editing::test_each_case_as_on_any_machine
    gvisor/test_editing::test_nothing_is_lost_that_a_writer_at_full_speed_wrote
D7 a file that is no UTF-8 is told, and had as bytes
    gvisor/test_odd_places::test_a_file_in_latin_1_is_refused_as_text_with_the_place_and_comes_as_bytes
D10 nothing of the host is mounted, and no link leads to it
    gvisor/test_escape::test_what_the_container_is_given_is_all_it_has
    gvisor/test_escape::test_files_are_touched_with_the_users_rights_and_never_the_runners
D12 an id that is a path leads nowhere
    gvisor/test_odd_places::test_an_id_that_is_a_path_leads_nowhere
    gvisor/test_sandboxes::test_ids_that_would_reach_elsewhere_are_refused
D13 a loop of links ends
    gvisor/test_odd_places::test_a_loop_of_links_ends_every_call
D16 a linked folder with secrets stops nothing
    gvisor/test_odd_places::test_a_linked_folder_that_holds_secrets_stops_nothing
D18 odd names are only names
    gvisor/test_raw_files::test_odd_names_are_only_names
    gvisor/test_files::test_odd_names_are_only_names
D19 a download keeps its name in any script
    api/test_downloads::test_no_name_ends_the_header_or_becomes_another
D23 the working directory may go
    gvisor/test_odd_places::test_the_working_directory_cannot_be_taken_away_and_a_replaced_one_is_told
    gvisor/test_commands::test_removing_the_working_directory_leaves_the_sandbox_usable
D24 a watch sees files in new folders
    not here: Nothing watches files here.
D25 many open files and long listings harm nobody
    gvisor/test_odd_places::test_many_files_held_open_take_none_from_others
    gvisor/test_listing::test_thirty_thousand_names_again_and_again_take_no_more_memory
D26 archives are bounded
    not here: Nothing unpacks archives here.
D27 a part of a large file is read as a part
    engine/test_viewing::test_a_part_is_that_of_the_whole_however_it_comes
    gvisor/test_editing::test_a_page_of_a_large_file_takes_no_memory_for_the_rest

Life of a sandbox
E2 activity a moment before the sweep counts
    sandboxes/test_overdue::test_activity_a_moment_before_the_sweep_keeps_it
E3 what runs or waits for a person is not torn down
    sandboxes/test_overdue::test_a_command_that_runs_is_activity_however_long_it_says_nothing
    sandboxes/test_overdue::test_while_an_action_waits_for_a_person_it_is_stopped_and_not_ended
    gvisor/test_persistent::test_while_an_action_waits_its_sandbox_is_stopped_and_runs_it_once_approved
E4 keeping alive can be switched off again
    not here: There is no such switch; what is persistent is stopped when idle, and starts at the next call.
E6 a create that fails at any stage leaves nothing
    gvisor/test_sandboxes::test_failure_at_any_stage_leaves_nothing
    gvisor/test_boxes::test_a_create_that_fails_leaves_neither_row_nor_container
E7 after a kill strays go and live ones stay
    gvisor/test_crashes::test_strays_of_this_instance_are_removed_and_those_of_others_are_not
    gvisor/test_up::test_kill_9_leaves_sandboxes_and_the_next_start_has_them_with_their_files
E8 what somebody removed by hand can be made again
    gvisor/test_loss::test_removed_from_outside
    gvisor/test_sandboxes::test_volumes_pruned_behind_its_back_are_made_again
    gvisor/test_boxes::test_rows_and_docker_are_made_to_agree
E10 fifty creates at once
    gvisor/test_storm::test_fifty_creates_at_once
E11 many deletes have one effect
    gvisor/test_long::test_ten_deletes_at_once_have_one_effect_and_no_fault
    gvisor/test_removal::test_removed_by_two_at_once
E12 a delete whose client leaves is done
    gvisor/test_persistent::test_deleted_while_it_is_stopped_by_a_client_that_leaves_nothing_is_left_of_it
    gvisor/test_sandboxes::test_removal_that_is_cancelled_is_still_whole
E13 each end has its true reason
    gvisor/test_loss::test_whole_sandbox_out_of_memory
    gvisor/test_loss::test_sandbox_that_meets_the_containers_process_limit
    sandboxes/test_overdue::test_the_lifetime_ends_it_even_when_something_runs_or_waits
    sandboxes/test_overdue::test_an_idle_one_ends
E14 out of memory is an end, told at once
    gvisor/test_boxes::test_a_sandbox_that_ran_out_of_memory_says_so_and_a_persistent_one_goes_on
E16 a call that is refused starts nothing
    gvisor/test_persistent::test_a_call_that_is_refused_does_not_start_it
E18 a failed start leaves no new disk and keeps an old one
    gvisor/test_set_down::test_a_start_that_fails_at_any_stage_leaves_the_files_and_nothing_else
    gvisor/test_sandboxes::test_failure_at_any_stage_leaves_nothing
E21 thousands of commands leave nothing
    gvisor/test_limits::test_commands_leave_nothing_behind

Network
F1 names are resolved in a fresh sandbox
    gvisor/test_jail::test_names_are_resolved_and_an_address_counts_not_its_name
F2 the jail holds as seen from inside
    gvisor/test_jail::test_a_sandbox_reaches_the_internet_and_nothing_else_and_without_the_jail_it_would
F4 what is refused is refused at once
    gvisor/test_jail::test_addresses_of_nobody_answer_nobody
    gvisor/test_jail::test_other_name_servers_are_closed_wherever_they_are
F6 ranges hold to their last address
    engine/test_lanes::test_every_range_that_is_not_public_is_refused_to_its_last_address
F8 metadata is closed in every spelling
    gvisor/test_jail::test_metadata_is_closed_in_every_spelling
F9 an address counts, not its name
    gvisor/test_jail::test_names_are_resolved_and_an_address_counts_not_its_name
F10 previews lead nowhere inside
    not here: There is no preview router and no gateway that follows redirects.
F12 no gap while rules change
    gvisor/test_jail_table::test_not_one_packet_passes_while_the_table_is_set_again_and_again
F13 a relay inside opens nothing
    gvisor/test_jail::test_a_relay_inside_and_another_host_header_lead_nowhere_else
F14 a Host header changes no destination
    gvisor/test_jail::test_a_relay_inside_and_another_host_header_lead_nowhere_else
F17 without the jail no network
    gvisor/test_jail::test_no_sandbox_with_a_network_starts_while_the_jail_cannot_be_set

Secrets and rights
G1 a command's secrets are in no log and no metric
    gvisor/test_long::test_a_secret_in_a_command_is_in_no_log_and_no_metric
    api/test_metrics::test_nothing_in_it_names_anybody
    workspaces/test_logs::test_a_traceback_shows_no_variables
G2 labels of the engine cannot be claimed
    gvisor/test_long::test_whatever_a_caller_calls_a_sandbox_its_labels_are_the_engines
G4 each operation needs its own permission
    api/test_doors::test_without_its_permission_nothing_opens
    api/test_doors::test_what_is_not_yours_is_not_there
G7 what its agent left ends by itself
    sandboxes/test_overdue::test_an_idle_one_ends
"""

_CASE = re.compile(r"([A-GP]\d+) (.+)")
NOT_HERE = "not here: "


@dataclass
class Case:
    id: str
    holds: str
    tests: list[str] = field(default_factory=list)
    """`folder/file::test`, below tests/ and without .py."""
    not_here: str = ""


def cases(table: str = TABLE) -> Iterator[Case]:
    found: list[Case] = []
    for line in table.splitlines():
        if heading := _CASE.fullmatch(line):
            found.append(Case(*heading.groups()))
        elif line.startswith("    "):
            _add(found[-1], line.strip())
    yield from found


def _add(case: Case, line: str) -> None:
    if line.startswith(NOT_HERE):
        case.not_here = line.removeprefix(NOT_HERE)
    else:
        case.tests.append(line)
