import uuid

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from uuid_utils.compat import uuid7

from accounts.models import ApiKey, Organisation, Revised, User
from core.errors import ConflictError
from core.names import MAX_NAME_CHARACTERS, NameKey, validate_name_characters
from scripts_engine.sandbox import MAX_WALL_SECONDS, Limits

# Authors that have no name any more.
FORMER_MEMBER = "Former member"
UNKNOWN_AUTHOR = "Unknown"


class ScriptQuerySet(models.QuerySet["Script"]):
    def of_organisation(self, organisation: Organisation) -> "ScriptQuerySet":
        return self.ever_of_organisation(organisation).existing()

    def ever_of_organisation(self, organisation: Organisation) -> "ScriptQuerySet":
        """Includes deleted scripts, whose runs stay readable."""
        return self.filter(organisation=organisation)

    def existing(self) -> "ScriptQuerySet":
        return self.filter(deleted_at__isnull=True)

    def told_of_alerts(self) -> "ScriptQuerySet":
        """The alert scripts that can run, one at most of each organisation."""
        return self.existing().filter(
            alerts__isnull=False,
            organisation__is_active=True,
            is_enabled=True,
            is_library=False,
            current_version__isnull=False,
        )

    def requiring(self, library: "Script") -> "ScriptQuerySet":
        """Those whose live version requires the library, in whichever version."""
        requirements = RequiredLibrary.objects.filter(
            version=models.OuterRef("current_version"), library_version__script=library
        )
        return self.filter(models.Exists(requirements))


class Script(Revised):
    """A Lua program of an organisation, with versions of its source.

    A library has no hooks and no runs: other scripts get what it returns from ``require``. A
    deleted script keeps its row, because its runs stay readable.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="scripts")
    name = models.CharField(
        max_length=MAX_NAME_CHARACTERS,
        validators=[validate_name_characters],
        help_text="The script's name, which no other of the organisation has.",
    )
    name_key = NameKey()
    is_library = models.BooleanField(
        "library",
        default=False,
        db_default=False,
        editable=False,
        help_text="Whether other scripts require it, and nothing runs it.",
    )
    # The live one.
    current_version = models.ForeignKey(
        "scripts_engine.ScriptVersion",
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        editable=False,
    )
    timeout_seconds = models.FloatField(
        default=Limits().wall_seconds,
        validators=[MinValueValidator(0.1), MaxValueValidator(MAX_WALL_SECONDS)],
        help_text=f"Longer runs are stopped. Maximum {MAX_WALL_SECONDS:g} s.",
    )
    is_enabled = models.BooleanField(
        "enabled", default=True, help_text="The hooks of a disabled script return 404."
    )
    max_concurrent_runs = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(10_000)],
        help_text="Runs at the same time, over all of its hooks. Empty: unlimited.",
    )
    queue_paused_at = models.DateTimeField(
        null=True, editable=False, help_text="Since then, its queued runs wait."
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the script was created.")
    updated_at = models.DateTimeField(auto_now=True, help_text="When the script was last changed.")
    deleted_at = models.DateTimeField(null=True, editable=False)

    objects = ScriptQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["organisation", "-created_at", "-id"],
                condition=models.Q(deleted_at__isnull=True),
                name="script_newest_first",
            ),
            models.Index(
                fields=["deleted_at"],
                condition=models.Q(deleted_at__isnull=False),
                name="script_deleted",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name_key"],
                condition=models.Q(deleted_at__isnull=True),
                name="one_script_per_name",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def can_run(self) -> bool:
        """Whether calls, ticks and queued runs of it start now."""
        is_live = self.is_enabled and self.current_version_id is not None
        return is_live and self.organisation.is_active

    @property
    def source(self) -> str:
        return "" if self.current_version is None else self.current_version.source


class ScriptVersionQuerySet(models.QuerySet["ScriptVersion"]):
    def of_organisation(self, organisation: Organisation) -> "ScriptVersionQuerySet":
        return self.filter(script__in=Script.objects.of_organisation(organisation))

    def to_list(self) -> "ScriptVersionQuerySet":
        """Those that were published, and drafts; not earlier states of drafts, which runs name."""
        return self.exclude(draft_of="", published_at=None)

    def drafts(self) -> "ScriptVersionQuerySet":
        return self.exclude(draft_of="").order_by("-created_at", "-pk")


class VersionState(models.TextChoices):
    DRAFT = "draft", "Draft"
    LIVE = "live", "Live"
    PAST = "past", "Past"


class ScriptVersion(models.Model):
    """A version of a script's source, with the versions of the libraries that it requires.

    Each run refers to the version that ran. A version is immutable once it was published or has
    run; a draft that has not run is replaced, under a new id.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(help_text="Counts from 1 for each script.")
    source = models.TextField(blank=True, help_text="Lua 5.4.")
    source_digest = models.CharField(
        max_length=64, db_index=True, editable=False, help_text="SHA-256 of the source, in hex."
    )
    draft_of = models.CharField(
        max_length=60,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The author whose draft it is: user or key, with its id. Empty: no draft.",
    )
    published_at = models.DateTimeField(
        null=True, editable=False, help_text="When it first went live; null if it never did."
    )
    has_run = models.BooleanField(
        default=False, db_default=False, editable=False, help_text="Whether a draft has run."
    )
    # What was live when the draft was begun.
    base = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_with = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the version was saved.")

    objects = ScriptVersionQuerySet.as_manager()

    class Meta:
        verbose_name = "version"
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["script", "number"], name="one_version_per_number"),
            models.UniqueConstraint(
                fields=["script", "draft_of"],
                condition=~models.Q(draft_of=""),
                name="one_draft_per_author",
            ),
        ]

    def __str__(self) -> str:
        return f"Version {self.number} of {self.script}"

    @property
    def state(self) -> VersionState:
        if self.draft_of:
            return VersionState.DRAFT
        is_live = self.script.current_version_id == self.pk
        return VersionState.LIVE if is_live else VersionState.PAST

    def check_unchanged(self) -> None:
        """Raises ``ConflictError`` if the draft is not as it was read. Call it with a lock."""
        present = ScriptVersion.objects.filter(pk=self.pk, draft_of=self.draft_of)
        if not present.filter(source_digest=self.source_digest).exists():
            raise ConflictError(f"Your draft of “{self.script}” was changed in another window.")

    def check_based_on_live(self) -> None:
        """Raises ``ConflictError`` if another version than the draft's base is live.

        Call it with a lock.
        """
        script = self.script
        if self.base_id != script.current_version_id:
            raise ConflictError.of_row(str(script), by=script.revised_by, at=script.revised_at)

    @property
    def author(self) -> str:
        """The e-mail of the person, or the name of the key, that saved it; else words for them."""
        return author_of(self.created_by, self.created_with, self.script.organisation_id)


def author_of(user: User | None, api_key: ApiKey | None, organisation_id: uuid.UUID) -> str:
    """In words that everybody of the organisation may read."""
    if user is not None:
        email: str | None = user.email_known_to(organisation_id)
        return email or FORMER_MEMBER
    return UNKNOWN_AUTHOR if api_key is None else api_key.name


class RequiredLibrary(models.Model):
    """A library that a version requires by a name, in the version that it was resolved to."""

    version = models.ForeignKey(
        ScriptVersion, on_delete=models.CASCADE, related_name="requirements", db_index=False
    )
    name = models.CharField(max_length=MAX_NAME_CHARACTERS, help_text="As the source spells it.")
    library_version = models.ForeignKey(
        ScriptVersion, on_delete=models.PROTECT, related_name="required_by"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "name"], name="one_library_per_name")
        ]

    def __str__(self) -> str:
        return f"{self.name} in {self.version_id}"


class AlertScript(models.Model):
    """The script that is run with each alert of its organisation.

    The row stays when the script is deleted, so that it is the alert script again if that is
    undone.
    """

    organisation = models.OneToOneField(
        Organisation, primary_key=True, on_delete=models.CASCADE, related_name="alert_script"
    )
    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="alerts")

    def __str__(self) -> str:
        return f"Alert script of {self.organisation_id}"


class NoticeWay(models.TextChoices):
    """How an organisation is told of a script that fails."""

    MAIL = "mail", "E-mail"
    ALERT = "alert", "Alert script"


class FailureNotice(models.Model):
    """What was last told of a script in one way: that it fails, or that it works again."""

    script = models.ForeignKey(
        Script, on_delete=models.CASCADE, related_name="failure_notices", db_index=False
    )
    way = models.CharField(max_length=8, choices=NoticeWay.choices)
    is_failing = models.BooleanField()
    sent_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["script", "way"], name="one_failure_notice_per_way")
        ]

    def __str__(self) -> str:
        return f"Failure notice of script {self.script_id}"
