"""The one composition root: builds each use case when a function first needs it, and keeps it for the process.

Adapters and use cases are imported where they are built, so that each function loads its own and no other: those that
answer in milliseconds never load the model SDK, the SQL parser, the guards or boto3. What a function's events are sure
to need it imports as it starts, by `import_for`.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import importlib
import logging
import time
from datetime import timedelta
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from superbizagent.adapters import worker_thread
from superbizagent.adapters.system_clock import SystemClock
from superbizagent.errors import ConfigurationError
from superbizagent.settings import (
    AccountSettings,
    ChannelSettings,
    DatabaseSettings,
    EvidenceSettings,
    KnowledgeSettings,
    ModelSettings,
    PageSettings,
    RedactionSettings,
    RunSettings,
    SignInSettings,
    environment,
    is_key,
    read,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from superbizagent.adapters.evidence_file import (
        CloudWatchEntry,
        CloudWatchSettings,
        DatabaseEntry,
        EvidenceFile,
        LogEntry,
    )
    from superbizagent.adapters.log_projection import Room
    from superbizagent.adapters.mysql_login import Login
    from superbizagent.adapters.openai_embeddings import OpenAIEmbeddings
    from superbizagent.adapters.page_bucket import PageBucket
    from superbizagent.adapters.secrets_manager import SecretsManager
    from superbizagent.adapters.sign_in import AccessTokens
    from superbizagent.adapters.store import Database, SqlCancelRequests, SqlConnections, Timeouts
    from superbizagent.adapters.store.runs import SqlRunStore
    from superbizagent.application.cancellation import CancelUseCase
    from superbizagent.application.chat import ChatUseCase
    from superbizagent.application.connections import ConnectionUseCase
    from superbizagent.application.evidence_tools import EvidenceSources
    from superbizagent.application.execution import ChatLimits
    from superbizagent.application.history import HistoryUseCase
    from superbizagent.application.sweep import SweepUseCase
    from superbizagent.custom_resource import CustomResource, TimeLeft
    from superbizagent.events import AuthorizerEvent, MessageEvent
    from superbizagent.exchange import Expected, Serve, Served
    from superbizagent.ports import (
        BusinessDatabase,
        Channel,
        Clock,
        Journal,
        KnowledgeIndex,
        LogSource,
        Model,
        Redactor,
    )

T = TypeVar("T")

_log = logging.getLogger(__name__)

Use = Literal["connections", "cancel", "history", "sweep", "runs"]
_IMPORTED_FOR: dict[Use, tuple[str, ...]] = {
    "connections": (
        "superbizagent.adapters.store",
        "superbizagent.application.connections",
    ),
    "cancel": ("superbizagent.application.cancellation",),
    "history": (
        "superbizagent.adapters.store.history",
        "superbizagent.application.history",
    ),
    "sweep": (
        "superbizagent.adapters.cloudwatch_journal",
        "superbizagent.adapters.store.overdue",
        "superbizagent.application.sweep",
    ),
    "runs": (
        "boto3",
        "superbizagent.adapters.business_database",
        "superbizagent.adapters.cloudwatch_journal",
        "superbizagent.adapters.cloudwatch_logs",
        "superbizagent.adapters.connection_api",
        "superbizagent.adapters.evidence_file",
        "superbizagent.adapters.knowledge",
        "superbizagent.adapters.openai_model",
        "superbizagent.adapters.redaction",
        "superbizagent.adapters.store.runs",
    ),
}


class Services:
    """The use cases of one process. `database_url` stands in for DATABASE_URL, for a command that was given one."""

    clock = SystemClock()

    def __init__(self, database_url: str | None = None) -> None:
        self._database_url = database_url

    @cached_property
    def database(self) -> Database:
        return self.open_database()

    def open_database(self, timeouts: Timeouts | None = None) -> Database:
        """A database of the caller's own, to close; `timeouts` for work that takes longer than a unit's."""
        from superbizagent.adapters.store import Database

        if self._database_url is not None:
            return Database(self._database_url, timeouts=timeouts)
        settings = read(DatabaseSettings)
        return Database(
            settings.database_url or _address(settings),
            ca_file=settings.database_ca_file,
            login=self._login(settings) if settings.database_url is None else None,
            pool_size=settings.database_pool_size,
            timeouts=timeouts,
        )

    def provide_account(self, database: Database) -> None:
        """The functions' account of that database, which is its owner's; nothing where none is configured."""
        from superbizagent.adapters.store.accounts import Account, provide_account

        settings = read(AccountSettings)
        if settings.account_name is None:
            return
        account = Account(settings.account_name, None)
        if settings.account_secret_arn is not None:
            # What an earlier deployment read in this process may have been rotated since.
            self._secrets.forget(settings.account_secret_arn)
            account = Account(*self._secret_login(settings.account_secret_arn).credentials())
        provide_account(database, account)

    def _login(self, settings: DatabaseSettings) -> Login:
        """Who signs in to the database of a deployed stack; nothing is read before the first connection."""
        host, user, arn = settings.database_host, settings.database_user, settings.database_secret_arn
        if settings.database_iam_login and host is not None and user is not None:
            from superbizagent.adapters.iam_login import IamLogin

            return IamLogin(host, settings.database_port, user)
        if arn is None:
            raise ConfigurationError("DATABASE_SECRET_ARN is not set")
        return self._secret_login(arn)

    def _secret_login(self, arn: str) -> Login:
        from superbizagent.adapters.secrets_manager import SecretLogin

        return SecretLogin(self._secrets, arn)

    @cached_property
    def _secrets(self) -> SecretsManager:
        from superbizagent.adapters.secrets_manager import SecretsManager

        return SecretsManager()

    def _key(self, given: str | None, arn: str | None) -> str:
        """An API key, given or in a secret. Raises ConfigurationError."""
        if given is not None or arn is None:
            return given or "none"
        key = self._secrets.text(arn).strip()
        if not is_key(key):
            raise ConfigurationError("the secret of an API key has characters that no key has")
        return key

    @cached_property
    def connections(self) -> ConnectionUseCase:
        from superbizagent.application.connections import ConnectionUseCase

        return ConnectionUseCase(self._connections, self._cancel_requests, self.clock)

    @cached_property
    def cancel(self) -> CancelUseCase:
        from superbizagent.application.cancellation import CancelUseCase

        return CancelUseCase(self._cancel_requests, self.clock)

    @cached_property
    def history(self) -> HistoryUseCase:
        from superbizagent.adapters.store.history import SqlHistory
        from superbizagent.application.history import HistoryUseCase

        return HistoryUseCase(SqlHistory(self.database))

    @cached_property
    def sweep(self) -> SweepUseCase:
        from superbizagent.adapters.store.overdue import SqlOverdueRuns
        from superbizagent.application.sweep import SweepUseCase

        runs = SqlOverdueRuns(self.database)
        return SweepUseCase(runs, self._connections, self.clock, self._overdue_grace, self.journal)

    @cached_property
    def chat(self) -> ChatUseCase:
        from superbizagent.application.cancellation import CancelWatch
        from superbizagent.application.chat import ChatUseCase

        settings = read(RunSettings)
        return ChatUseCase(
            runs=self._runs,
            cancel_watch=CancelWatch(self._cancel_requests, self.clock, settings.cancel_poll_seconds),
            model=self._model,
            sources=self._sources,
            redact=self.redact,
            clock=self.clock,
            limits=_limits(settings),
            journal=self.journal,
        )

    def custom_resource(self, event: dict[str, Any], time_left: TimeLeft) -> CustomResource:
        """The answer that CloudFormation waits for; `time_left` is the function's, in seconds."""
        from superbizagent.adapters.cloudformation import put_answer
        from superbizagent.custom_resource import CustomResource, CustomResourceEvent

        return CustomResource(CustomResourceEvent.model_validate(event), put_answer, time_left)

    def page_bucket(self, name: str) -> PageBucket:
        """Where a deployment keeps the page."""
        from superbizagent.adapters.page_bucket import PageBucket

        return PageBucket(name, read(PageSettings).page_folder)

    @cached_property
    def channel(self) -> Channel:
        from superbizagent.adapters.connection_api import ConnectionApi
        from superbizagent.application.journal import JournalledChannel

        return JournalledChannel(ConnectionApi(read(ChannelSettings).connections_endpoint), self.journal)

    @cached_property
    def journal(self) -> Journal:
        from superbizagent.adapters.cloudwatch_journal import CloudWatchJournal

        return CloudWatchJournal()

    def quiet(self, within: float) -> bool:
        """Whether the database has nothing left to do, after waiting up to `within` seconds."""
        database: Database | None = vars(self).get("database")
        return database is None or database.quiet(within)

    async def answer(
        self, event: MessageEvent, expected: type[Expected], serve: Serve[Expected, Served]
    ) -> Served | None:
        """Serves a client's message of the expected kind, or refuses it with one error frame."""
        from superbizagent.exchange import answer

        return await answer(event, expected, serve, self.channel, self.connections)

    async def principal_of(self, handshake: AuthorizerEvent) -> str:
        """Whose token the handshake brings; raises SignInError, and ConfigurationError."""
        return await self._access_tokens.principal(handshake.token)

    @cached_property
    def _access_tokens(self) -> AccessTokens:
        from superbizagent.adapters.sign_in import AccessTokens, Issuer, SigningKeys, TokenRules

        settings = read(SignInSettings)
        rules = TokenRules(
            issuer=settings.auth_issuer,
            audience=frozenset(settings.auth_audience),
            algorithms=frozenset(settings.auth_algorithms),
            clock_skew=settings.auth_clock_skew_seconds,
        )
        issuer = Issuer(settings.auth_issuer, settings.auth_jwks_url)
        return AccessTokens(rules, SigningKeys(issuer.keys, self.clock))

    @cached_property
    def _runs(self) -> SqlRunStore:
        from superbizagent.adapters.store.runs import SqlRunStore

        return SqlRunStore(self.database, overdue_grace=self._overdue_grace)

    @cached_property
    def _connections(self) -> SqlConnections:
        from superbizagent.adapters.store import SqlConnections

        return SqlConnections(self.database)

    @cached_property
    def _cancel_requests(self) -> SqlCancelRequests:
        from superbizagent.adapters.store import SqlCancelRequests

        return SqlCancelRequests(self.database)

    @cached_property
    def _overdue_grace(self) -> timedelta:
        """Past its deadline a living run may still write its end for as long as its reserve lasts."""
        return timedelta(seconds=read(RunSettings).terminal_reserve_seconds)

    @cached_property
    def _model(self) -> Model:
        from superbizagent.adapters.openai_model import OpenAIModel

        settings = read(ModelSettings)
        return OpenAIModel(
            api_key=self._key(settings.openai_api_key, settings.openai_api_key_secret_arn),
            base_url=settings.openai_base_url,
            model=settings.openai_model,
        )

    @cached_property
    def _sources(self) -> EvidenceSources:
        from superbizagent.application.evidence_tools import EvidenceSources

        evidence = self._evidence_file
        return EvidenceSources(
            logs=_log_sources(evidence, self.clock, self.redact, read(RunSettings)),
            knowledge=self.knowledge,
            database=self._business_database(evidence.database),
        )

    @cached_property
    def knowledge(self) -> KnowledgeIndex:
        settings = read(KnowledgeSettings)
        if settings.knowledge_base_id is not None:
            from superbizagent.adapters.knowledge.bedrock import BedrockKnowledgeIndex

            return BedrockKnowledgeIndex(settings.knowledge_base_id, self.redact)
        from superbizagent.adapters.knowledge import FullTextKnowledgeIndex

        if (embeddings := self.embeddings) is not None:
            from superbizagent.adapters.knowledge.reranked_index import RerankedKnowledgeIndex

            return RerankedKnowledgeIndex(self.database, embeddings, settings.embeddings_query_seconds)
        return FullTextKnowledgeIndex(self.database)

    @cached_property
    def embeddings(self) -> OpenAIEmbeddings | None:
        """None where no model for them is configured."""
        settings = read(KnowledgeSettings)
        if settings.embeddings_model is None:
            if settings.embeddings_base_url is not None:
                raise ConfigurationError("EMBEDDINGS_BASE_URL is set and EMBEDDINGS_MODEL is not")
            return None
        from superbizagent.adapters.openai_embeddings import OpenAIEmbeddings

        return OpenAIEmbeddings(
            api_key=self._key(settings.embeddings_api_key, settings.embeddings_api_key_secret_arn),
            base_url=settings.embeddings_base_url,
            model=settings.embeddings_model,
            query_model=settings.embeddings_query_model,
            redact=self.redact,
        )

    @cached_property
    def _evidence_file(self) -> EvidenceFile:
        from superbizagent.adapters.evidence_file import evidence_of, load_evidence_file

        settings = read(EvidenceSettings)
        if settings.evidence_file is not None:
            return load_evidence_file(settings.evidence_file, environment())
        arn = settings.business_database_secret_arn
        return evidence_of(
            settings.log_group_arns,
            self._secrets.fields(arn) if arn is not None else None,
            settings.business_tables,
        )

    def _business_database(self, entry: DatabaseEntry | None) -> BusinessDatabase | None:
        if entry is None:
            return None
        from superbizagent.adapters.business_database import read_only_database

        settings = read(EvidenceSettings)
        arn, ca_file = settings.business_database_secret_arn, settings.business_database_ca_file
        if arn is not None and ca_file is None:
            raise ConfigurationError("BUSINESS_DATABASE_CA_FILE is not set, and a secret needs verified TLS")
        return read_only_database(
            entry.url,
            {name: table.description for name, table in entry.tables.items()},
            login=self._secret_login(arn) if arn is not None else None,
            ca_file=ca_file,
            redact=self.redact,
        )

    @cached_property
    def redact(self) -> Redactor:
        arn = read(RedactionSettings).redaction_key_secret_arn
        return redactor(self.database) if arn is None else _keyed_redactor(self._secrets.text(arn))


def redactor(database: Database) -> Redactor:
    """All that use one database mark the same secret alike, whether in a stored document or in a log line.

    The marks can be linked to a guessed secret only by who knows the database's address with its password.
    """
    return _keyed_redactor(database.engine.url.render_as_string(hide_password=False))


def _keyed_redactor(key: str) -> Redactor:
    from superbizagent.adapters.redaction import SecretRedactor

    return SecretRedactor(hashlib.sha256(f"redaction of {key}".encode()).digest())


def _address(settings: DatabaseSettings) -> str:
    return f"mysql+pymysql://{settings.database_host}:{settings.database_port}/{settings.database_name}"


def _log_sources(evidence: EvidenceFile, clock: Clock, redact: Redactor, limits: RunSettings) -> LogSource:
    """Log files and log groups behind one port; each gives up before the collector would, to tell what it found."""
    from superbizagent.adapters.log_projection import Room
    from superbizagent.adapters.log_sources import LogSources

    room = Room(limits.projection_bytes, redact=redact)
    seconds = limits.tool_call_seconds * 0.8
    kinds: list[tuple[LogSource, Sequence[str]]] = []
    if evidence.logs:
        kinds.append((_log_files(evidence.logs, clock, room, seconds), tuple(evidence.logs)))
    if (settings := evidence.cloudwatch_settings) is not None:
        kinds.append((_log_groups(evidence.cloudwatch, settings, clock, room, seconds), tuple(evidence.cloudwatch)))
    return LogSources(kinds)


def _log_files(entries: Mapping[str, LogEntry], clock: Clock, room: Room, seconds: float) -> LogSource:
    from superbizagent.adapters.log_files import LogFiles, LogFileSource, SearchTime

    return LogFiles(
        {name: LogFileSource(**entry.model_dump()) for name, entry in entries.items()},
        room=room,
        time=SearchTime(seconds, clock),
    )


def _log_groups(
    entries: Mapping[str, CloudWatchEntry], settings: CloudWatchSettings, clock: Clock, room: Room, seconds: float
) -> LogSource:
    from superbizagent.adapters.cloudwatch_logs import CloudWatchLogs, CloudWatchSource, group_arn, new_api

    region, account, endpoint_url = settings.region, settings.account, settings.endpoint_url
    return CloudWatchLogs(
        {name: CloudWatchSource(**entry.model_dump()) for name, entry in entries.items()},
        api=lambda: new_api(region, endpoint_url),
        group_arn=(lambda group: group_arn(region, account, group)) if account is not None else None,
        clock=clock,
        room=room,
        timeout=seconds,
        lookback=timedelta(days=settings.lookback_days),
    )


def _limits(settings: RunSettings) -> ChatLimits:
    from superbizagent.application.evidence_collector import EvidenceLimits
    from superbizagent.application.execution import ChatLimits
    from superbizagent.domain.budget import BudgetLimits

    return ChatLimits(
        budget=BudgetLimits(
            model_calls=settings.run_model_calls,
            tool_calls=settings.run_tool_calls,
            tokens=settings.run_tokens,
            wall_time=settings.run_seconds,
        ),
        evidence=EvidenceLimits(
            projection_bytes=settings.projection_bytes,
            timeout=settings.tool_call_seconds,
            saturation=settings.saturation_calls,
        ),
        model_call=settings.model_call_seconds,
        verdict=settings.verdict_seconds,
        terminal_reserve=settings.terminal_reserve_seconds,
        # The rest of the reserve is for work that is slow to stop, and for the last frames.
        terminal_write=settings.terminal_reserve_seconds * 0.4,
    )


def import_for(*uses: Use) -> None:
    """Imports early what the first event would: Lambda gives a starting process more CPU, and a snapshot keeps it.

    Imports only. Settings are read and connections opened by the event that needs them.
    """
    # What is imported stays. The collector would go over all of it while more is loaded, and again in a run.
    gc.disable()
    for use in uses:
        for module in _IMPORTED_FOR[use]:
            importlib.import_module(module)
    gc.freeze()
    gc.enable()


@cache
def services() -> Services:
    return Services()


@cache
def _runner() -> asyncio.Runner:
    """One event loop a process: network clients that live from run to run belong to one loop."""
    return asyncio.Runner()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a handler's work to its end; nothing of it is left when this returns, for Lambda freezes the process.

    What was told to stop and doesn't would wake in the middle of a later event: with it the process ends,
    by SystemExit, and the platform makes a new one for the next event.
    """
    try:
        return _runner().run(work)
    finally:
        if not _quiet(0.0) and not _quiet(read(RunSettings).terminal_reserve_seconds):
            _log.critical("work went on after its event; the process ends")
            raise SystemExit(1)


def _quiet(within: float) -> bool:
    """Whether nothing is at work any more; what is left is told to stop and given `within` seconds."""
    end = time.monotonic() + within

    def left() -> float:
        return max(end - time.monotonic(), 0.0)

    tasks = _runner().run(_stopped(left()))
    threads = worker_thread.quiet(left())
    return services().quiet(left()) and threads and tasks


async def _stopped(within: float) -> bool:
    """Whether every other task has ended, after it was cancelled."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    return not others or not (await asyncio.wait(others, timeout=within))[1]
