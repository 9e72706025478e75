"""The way of a call from its token to its run, in the order in which calls are refused.

Network, the hook's methods, size, handshake and signature; then the limits of the run. A hook on
which nothing of this is set goes straight to its run.
"""

from functools import partial
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from accounts.networks import is_within
from core.http.problems import ProblemCode
from core.logs.bound import bind
from hooks.events import event_of
from hooks.preferences import prefers_no_wait
from hooks.refusals import CallRefused, Stranger
from hooks.replies import Response, acceptance_of, reply_of
from hooks.request import Request
from hooks.sender import prove_sender
from scripts_engine.event import Event
from scripts_engine.flows.call_notes.collector import call_notes
from scripts_engine.flows.call_notes.notes import Credential
from scripts_engine.flows.idempotency import RepeatedReply
from scripts_engine.flows.rules_of_call import CallRules
from scripts_engine.flows.run_call import AcceptedCall, accept_call, run_call
from scripts_engine.flows.run_script import FinishedRun, run_script
from scripts_engine.flows.run_spec import RunSpec
from scripts_engine.flows.verify_sender import greets_by
from scripts_engine.models import ReplyMode
from scripts_engine.senders import RefusalReason

_NO_HEADERS: frozenset[str] = frozenset()


def answer_call(
    request: Request,
    spec: RunSpec,
    hook_id: UUID,
    *,
    stranger: Stranger,
    methods: tuple[str, ...],
    hidden_headers: frozenset[str] = _NO_HEADERS,
) -> Response:
    """Answers a call whose token matched. HEAD, which senders use to test a URL, runs nothing.

    ``stranger`` is the answer to a wrong token, and ``methods`` are those of the address. Raises
    ``Problem`` for a refused call, or one of ``NOT_RUN_ERRORS``.
    """
    request.spec = spec
    bind(organisation=spec.organisation_id, script=spec.script_id, hook=hook_id)
    rules = spec.rules
    if rules is not None and not is_within(request.client_address, rules.allowed_networks):
        raise stranger.refused(RefusalReason.NETWORK_NOT_ALLOWED)
    if request.method == "HEAD":
        return Response(200, [("Content-Type", "text/html; charset=utf-8")], b"")
    if rules is None:
        if request.method not in methods:
            raise _method_not_allowed(methods)
        body = request.read_body(settings.HOOK_MAX_BODY_BYTES)
        return _run(request, spec, event_of(request, body, hidden_headers))
    return _answer_by_rules(request, spec, hook_id, rules, methods, hidden_headers)


def _answer_by_rules(
    request: Request,
    spec: RunSpec,
    hook_id: UUID,
    rules: CallRules,
    methods: tuple[str, ...],
    hidden_headers: frozenset[str],
) -> Response:
    sender = rules.sender
    # Handshakes need not be among the methods that run the script.
    not_allowed = None
    if request.method not in methods or request.method not in rules.methods:
        not_allowed = _method_not_allowed(methods, rules)
        if sender is None or not greets_by(sender, request.method):
            raise not_allowed
    if sender is None:
        body = request.read_body(rules.max_body_bytes)
        return _run(request, spec, event_of(request, body, hidden_headers))
    body = request.read_body(rules.max_body_bytes)
    proven = prove_sender(request, hook_id, rules, sender, body, unless_greeting=not_allowed)
    if isinstance(proven, Response):
        return proven
    return _run(request, spec, event_of(request, body, hidden_headers, proven))


def _run(request: Request, spec: RunSpec, event: Event) -> Response:
    """Runs the script for a call that was accepted."""
    if spec.overlapping_digest and spec.hook_id is not None:
        use = Credential(spec.hook_id, spec.overlapping_digest)
        add_use = partial(call_notes.add_use, use, timezone.now(), event.client_address)
        request.after_reply.append(add_use)
    if spec.hook_id is None:
        raise ValueError("a call has a hook")
    rules = spec.rules
    result: FinishedRun | AcceptedCall | RepeatedReply
    is_accepted = rules is not None and rules.reply_mode == ReplyMode.ACCEPTED
    if is_accepted or prefers_no_wait(request, rules):
        result = accept_call(spec, spec.hook_id, rules, event)
    elif rules is None:
        result = run_script(spec, event)
    else:
        result = run_call(spec, spec.hook_id, rules, event)
    # A duplicate gets what the first delivery got, whichever way the hook replies now.
    if isinstance(result, AcceptedCall):
        return acceptance_of(request, rules, result)
    if isinstance(result, RepeatedReply) and result.was_accepted:
        return acceptance_of(request, rules, result)
    return reply_of(request, result)


def _method_not_allowed(methods: tuple[str, ...], rules: CallRules | None = None) -> CallRefused:
    running = methods if rules is None else ("HEAD", *rules.methods)
    allowed = [method for method in methods if method in running]
    return CallRefused(
        RefusalReason.METHOD_NOT_ALLOWED,
        ProblemCode.METHOD_NOT_ALLOWED,
        headers={"Allow": ", ".join(allowed)},
    )
