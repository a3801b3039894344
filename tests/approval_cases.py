"""Faults that products with approval prompts are known to have, as a reviewer meets them, and the tests that show that
this console has not got them. Written as the table of `tests/cases.py` is."""

TABLE = """
Seeing the whole thing
P1 a long text is counted, blank lines too, and opens Approve at its end
    browser/test_fatigue::test_what_hides_below_blank_lines_is_counted_and_the_buttons_stay_in_view
    browser/test_reading::test_approve_is_locked_until_every_line_was_on_screen
    pages/test_draw::test_blank_lines_are_announced_and_what_follows_is_marked
P2 every line is there, and the page's text is the stored bytes
    pages/test_draw::test_a_sheet_read_from_the_page_is_the_text
    browser/test_reading::test_five_thousand_lines_can_be_read_by_holding_a_key
P4 a long text never pushes the buttons off the screen
    browser/test_fatigue::test_what_hides_below_blank_lines_is_counted_and_the_buttons_stay_in_view
P5 line breaks stay, and what is copied is the bytes
    pages/test_draw::test_a_sheet_read_from_the_page_is_the_text
    pages/test_queue::test_raw_bytes_are_the_bytes_and_never_a_page
P6 nothing is approved that was not fetched whole
    pages/test_sockets::test_no_content_is_ever_sent
    approvals/test_showing::test_a_page_that_showed_nothing_approves_nothing_and_may_deny
    pages/test_queue::test_what_was_not_shown_cannot_be_approved
P7 an empty command never reaches the queue
    sandboxes/test_toolsets::test_a_command_that_cannot_be_one_is_refused
    pages/test_editing::test_the_tool_validates_the_edited_call
P8 nothing to approve is cut by an ellipsis
    pages/test_standing_orders::test_the_sheet_cuts_nothing_short
P10 a difference that is not seen whole is not approved
    browser/test_reading::test_one_changed_line_among_many_is_what_must_be_seen
    pages/test_queue::test_a_text_that_cannot_be_drawn_can_only_be_denied

Spoofed display
P12 characters without width show, and run unchanged
    browser/test_card::test_hostile_text_is_drawn_and_its_bytes_run_unchanged
    pages/test_draw::test_each_invisible_character_is_a_token_and_counted
P13 marks of direction show
    pages/test_draw::test_each_invisible_character_is_a_token_and_counted
P15 what Unicode prints as nothing shows
    pages/test_draw::test_no_hidden_character_reaches_a_page
P16 display and digest use the same bytes
    pages/test_draw::test_any_text_can_be_read_back_from_its_drawing
    browser/test_card::test_hostile_text_is_drawn_and_its_bytes_run_unchanged
P18 tabs show and are counted, look-alikes are named
    pages/test_draw::test_tabs_and_blanks_stay_what_they_are_and_are_counted
    pages/test_draw::test_a_look_alike_letter_is_marked_and_named

Two deciders
P31 of many deciders at once one wins
    approvals/test_decisions::test_twenty_deciders_at_once_make_one_decision
P39 a denial beats an approval of the same instant
    approvals/test_votes::test_deny_and_approve_at_the_same_instant_deny_wins

Lost and stale prompts
P40 a socket that closes decides nothing
    pages/test_standing_orders::test_closing_every_socket_leaves_what_waits_waiting
P42 who comes late sees what waits and what was decided
    pages/test_sockets::test_a_snapshot_and_then_every_change_by_number
    browser/test_review::test_a_second_browser_sees_the_decision_and_the_run
P47 every waiting card has two working buttons without script
    pages/test_queue::test_deciding_takes_a_plain_form
    browser/test_review::test_everything_works_without_script
P52 a click after the end of its time runs nothing and says so
    pages/test_standing_orders::test_a_click_a_second_late_runs_nothing_and_says_so
P55 what expires loses its buttons on every screen
    browser/test_fatigue::test_what_expires_loses_its_buttons_on_every_screen

Keyboard and focus
P70 no buffered key hits a new card, and nothing moves under the pointer
    browser/test_card::test_the_first_moments_decide_nothing
    browser/test_card::test_new_actions_wait_behind_a_button_and_nothing_moves
    browser/test_fatigue::test_no_single_key_decides_and_enter_on_deny_denies
P72 the click that brings the window back decides nothing
    browser/test_fatigue::test_the_first_click_after_the_window_regains_focus_does_nothing
P73 Enter on Deny denies
    browser/test_fatigue::test_no_single_key_decides_and_enter_on_deny_denies

Web attacks
P82 a foreign page gets no socket
    server/test_signed_in::test_a_foreign_page_gets_no_socket_and_the_log_says_why
    server/test_signed_in::test_on_the_wire_the_handshake_is_answered
P84 following a link decides nothing
    pages/test_queue::test_no_get_decides
"""
