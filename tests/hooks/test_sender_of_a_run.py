"""What a script sees, and what its run keeps, of the sender of its call."""

from accounts.models import Organisation
from scripts_engine.models import Run
from scripts_engine.runs.execution import run_script
from scripts_engine.runs.spec import Event
from tests.factories import make_hook, make_script, spec_of

SOURCE = """return {params.get("sender") or null, params.get("verified") or null,
    params.get("event_id") or null}"""


def event(**sender: str) -> Event:
    return Event("POST", "", (), b"", "192.0.2.1", **sender)


def test_a_script_sees_who_sent_the_call_and_how_sure_that_is(acme: Organisation) -> None:
    spec = spec_of(make_hook(make_script(acme, SOURCE)).hook)
    run_script(spec, event(sender="stripe", verified="signed", event_id="evt_1"))

    run = Run.objects.get()
    assert bytes(run.response_body) == b'["stripe","signed","evt_1"]'
    assert (run.sender, run.verified, run.event_id) == ("stripe", "signed", "evt_1")


def test_a_call_without_the_event_id_that_it_should_have_is_flagged(acme: Organisation) -> None:
    spec = spec_of(make_hook(make_script(acme, SOURCE)).hook)
    run_script(spec, event(sender="stripe", verified="signed", event_id=""))

    run = Run.objects.get()
    assert bytes(run.response_body) == b'["stripe","signed",null]'
    assert run.event_id == ""


def test_a_call_of_a_hook_without_a_sender_has_none_of_it(acme: Organisation) -> None:
    spec = spec_of(make_hook(make_script(acme, SOURCE)).hook)
    run_script(spec, event())

    run = Run.objects.get()
    assert bytes(run.response_body) == b"[null,null,null]"
    assert (run.sender, run.verified, run.event_id) == (None, None, None)


def test_an_event_id_is_cut_to_its_column(acme: Organisation) -> None:
    spec = spec_of(make_hook(make_script(acme, SOURCE)).hook)
    run_script(spec, event(sender="stripe", verified="signed", event_id="\0" + "é" * 600))

    assert Run.objects.get().event_id == "␀" + "é" * 499
