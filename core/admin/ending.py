"""Actions of the admin that end rows (revoke, withdraw, log out): the question, log and message."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from core.admin.confirmation import Question, ask, is_confirmed, next_address
from core.admin.links import list_of, page_of


class EndingMixin:
    """Mixin for model admins whose rows can be ended: revoked, withdrawn, logged out.

    The subclass declares a button that calls ``ask_and_end_one``, a list action that calls
    ``ask_and_end_selected``, and the texts, and calls its flow in ``end_rows``. Button and action
    require the permission ``end``: the subclass's ``may_change``, for a row that is live.
    """

    end_question: ClassVar[Question]
    ended_word: ClassVar[str]
    """A past participle, such as “revoked”, for messages and the history."""
    ending_deletes: ClassVar[bool] = False

    def end_rows(self, request: HttpRequest, rows: Iterable[Any]) -> Sequence[Any]:
        """Ends the rows and returns those that were not ended already."""
        raise NotImplementedError

    def is_live(self, row: Any) -> bool:
        """Whether the row can still be ended."""
        return True

    def ended_name(self, row: Any) -> str:
        """The row's name in the message after it alone was ended."""
        return str(row)

    def has_end_permission(self: Any, request: HttpRequest, object_id: str | None = None) -> bool:
        """Whether the person may end this row, or, without an id, use the list action."""
        if object_id is None:
            return bool(self.may_change(request))
        row = self.get_object(request, object_id)
        return row is not None and self.is_live(row) and bool(self.may_change(request, row))

    def ask_and_end_one(self: Any, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.get_or_404(request, object_id)
        default = list_of(self.model) if self.ending_deletes else page_of(row)
        return self.ask_and_end(request, [row], next_address(request, default))

    def ask_and_end_selected(self: Any, request: HttpRequest, rows: Iterable[Any]) -> HttpResponse:
        return self.ask_and_end(request, rows, request.get_full_path())

    def ask_and_end(
        self: Any,
        request: HttpRequest,
        rows: Iterable[Any],
        back_to: str,
        question: Question | None = None,
    ) -> HttpResponse:
        """The question or, once it is confirmed, a redirect after ending the rows."""
        if not is_confirmed(request):
            return ask(self, request, question or self.end_question, rows)
        ended = self.end_rows(request, rows)
        self._log_ended(request, ended)
        self.message_user(request, self._ended_message(ended), messages.SUCCESS)
        return redirect(back_to)

    def _log_ended(self: Any, request: HttpRequest, ended: Sequence[Any]) -> None:
        if self.ending_deletes:
            self.log_deletions(request, ended)
        else:
            by: Any = request.user.pk
            LogEntry.objects.log_actions(by, ended, CHANGE, f"{self.ended_word.capitalize()}.")

    def _ended_message(self: Any, ended: Sequence[Any]) -> str:
        if len(ended) == 1:
            return f"{self.ended_name(ended[0])} was {self.ended_word}."
        return f"{len(ended)} {self.opts.verbose_name_plural} were {self.ended_word}."
