// Every text the page shows, by the contract's codes. Codes it doesn't know get a plain default.

export const DEMO_BANNER = 'Answers come from the scripted demo model, not from a language model.';
export const DEMO_LABEL = 'Scripted demo model';

const TOOLS = {
  lookup_knowledge: { noun: 'Runbooks', doing: 'Searching the runbooks' },
  query_logs: { noun: 'Logs', doing: 'Reading logs' },
  query_mysql: { noun: 'Database', doing: 'Querying the database' },
};
const TOOL_RESULTS = { READY: 'found something', NO_EVIDENCE: 'nothing found', ERROR: 'could not be read' };
const ROUTES = {
  SYSTEM_CHAT: 'This is about the assistant itself',
  KNOWLEDGE_QUERY: 'This is a question for the runbooks',
  DIAGNOSIS: 'This needs a diagnosis',
};
const STEPS = {
  ROUTING: 'Reading the question',
  ANSWERING: 'Writing the answer',
  SEARCHING_KNOWLEDGE: 'Searching the runbooks',
  INVESTIGATING: 'Deciding what to look at',
  DRAFTING: 'Drafting a conclusion',
  CHECKING_EVIDENCE: 'Checking every claim against its evidence',
  CHECKING_MEANING: 'Checking that the evidence supports each claim',
};

export const toolName = (tool) => TOOLS[tool]?.noun ?? 'Source';

export function stepText({ code, intent, tool, status }) {
  if (code === 'ROUTED') return ROUTES[intent] ?? 'The kind of question is known';
  if (code === 'TOOL_STARTED') return TOOLS[tool]?.doing ?? 'Looking at a source';
  if (code === 'TOOL_FINISHED') return `${toolName(tool)}: ${TOOL_RESULTS[status] ?? 'done'}`;
  return STEPS[code] ?? 'Working';
}

const CONNECTION = {
  idle: 'Not connected',
  connecting: 'Connecting…',
  open: 'Connected',
};
const STOPPED = {
  unreachable: 'The service can’t be reached, or doesn’t accept your sign-in.',
  rejected: 'The service doesn’t accept your sign-in. Sign in again.',
  signedOut: 'Sign in to ask questions.',
  config: 'The page’s config.json names no usable WebSocket address. Tell the operator.',
};

export function connectionText({ name, delay, reason }) {
  if (name === 'waiting') return `Connection lost. Next try in ${Math.max(1, Math.round(delay / 1000))} s`;
  if (name === 'stopped') return STOPPED[reason];
  return CONNECTION[name];
}

/** What happened, and what to do; the text of a question is always kept. */
const ERRORS = {
  MALFORMED_REQUEST: 'The service could not read this message. Reload the page, then try again.',
  UNKNOWN_ACTION: 'The service doesn’t know this action. Reload the page: it may be out of date.',
  INVALID_QUERY: 'The question is empty or too long: at most 8,000 characters and 24 KB.',
  INVALID_SESSION_ID: 'This conversation’s id is not valid. Start a new conversation.',
  UNAUTHENTICATED: 'You are not signed in any more. Sign in and retry.',
  TOKEN_MISSING: 'You are not signed in. Sign in.',
  TOKEN_MALFORMED: 'The service could not read your sign-in. Sign in again.',
  TOKEN_UNTRUSTED: 'The service doesn’t know who signed you in. Sign in again.',
  TOKEN_EXPIRED: 'Your sign-in has expired. Sign in again.',
  TOKEN_NOT_YET_VALID: 'Your sign-in isn’t valid yet. Check this machine’s clock.',
  TOKEN_NOT_FOR_US: 'Your account gives no access to this service. Tell its operator.',
  ISSUER_UNAVAILABLE: 'The sign-in service can’t be reached. Try again in a minute.',
  SESSION_NOT_FOUND: 'This conversation doesn’t exist, or isn’t yours. Start a new one.',
  RUN_NOT_FOUND: 'The service doesn’t know this question any more. Ask it again.',
  SESSION_BUSY: 'Another question is being answered in this conversation. Wait for it or cancel it, then ask again.',
  REQUEST_CONFLICT: 'This message’s id was already used for another question. Ask again: it gets a new one.',
  ROUTING_UNAVAILABLE: 'The model could not tell what kind of question this is. Ask again.',
  RUN_PERSISTENCE_FAILED: 'The answer could not be stored, so it was not published. Ask again.',
  RUN_CANCELLED: 'The question was cancelled.',
  BUDGET_EXHAUSTED: 'The limits of this question were reached before anything was established. Ask something narrower.',
  KNOWLEDGE_UNAVAILABLE: 'The runbooks could not be searched. Ask again.',
  KNOWLEDGE_ANSWER_REJECTED: 'The answer didn’t hold to the documents found, so it was not published. Ask again in other words.',
  OBSERVER_FAILED: 'Progress could not be reported, so the question was ended. Ask again.',
  RUN_ABANDONED: 'Work on this question stopped without an answer. Ask again.',
  INTERNAL_FAILURE: 'Something went wrong in the service. Nothing was published. Ask again.',
  MODEL_TIMEOUT: 'The model didn’t answer in time. Ask again.',
  MODEL_UNAVAILABLE: 'The model can’t be reached. Try again in a minute.',
  MODEL_THROTTLED: 'The model takes no more questions at the moment. Try again in a minute.',
  MODEL_REPLY_INVALID: 'The model’s reply could not be used. Ask again.',
  MODEL_REFUSED: 'The model’s provider refused this question. Ask it in other words.',
  MODEL_MISCONFIGURED: 'The model is not set up correctly. Tell the operator of this service.',
  MODEL_CONTEXT_TOO_LONG: 'The question and its evidence are too long for the model. Ask something narrower.',
  INVALID_ARGUMENTS: 'The source was asked in a way it doesn’t understand.',
  UNKNOWN_TOOL: 'There is no such tool.',
  UNKNOWN_SOURCE: 'There is no source of that name.',
  STATEMENT_REFUSED: 'The statement isn’t one of the allowed read-only ones.',
  STATEMENT_FAILED: 'The database could not run the statement.',
  EVIDENCE_TIMEOUT: 'The source didn’t answer in time.',
  EVIDENCE_UNAVAILABLE: 'The source could not be read.',
  CLIENT_GONE: 'The page was disconnected.',
  CHANNEL_UNAVAILABLE: 'The page could not be reached.',
  STORE_UNAVAILABLE: 'The service’s database can’t be reached. Try again in a minute.',
  MIGRATION_LOCKED: 'The service’s database is being changed. Try again in a minute.',
  PAGE_NOT_PUBLISHED: 'The page could not be put in its place. Tell the service’s operator.',
  CONFIGURATION_ERROR: 'The service is not set up correctly. Tell its operator.',
};

export const knownErrorCodes = Object.keys(ERRORS);

export function errorText({ code, message }) {
  if (Object.hasOwn(ERRORS, code)) return ERRORS[code];
  return message || 'The service reported a problem this page doesn’t know.';
}

export const FALLBACK_REASONS = {
  INSUFFICIENT_EVIDENCE: 'The evidence found doesn’t support a conclusion.',
  CONTEXT_MISSING: 'More information is needed from you.',
  BUDGET_REACHED: 'The limits of this question were reached before a conclusion.',
  GUARD_REJECTED: 'A conclusion was drafted, but it didn’t hold up against the evidence.',
};

export const MISSING_CONTEXT = {
  SERVICE: 'Which service is affected?',
  TIME_RANGE: 'When did it happen: from when to when, in which time zone?',
  ENVIRONMENT: 'Which environment: production, staging, …?',
  IDENTIFIER: 'An identifier to search for: request, order, customer or host.',
  SYMPTOM: 'What exactly is observed: error text, metric, behaviour?',
};

export const OBSERVATION_STATUS = { READY: 'Found', NO_EVIDENCE: 'Nothing found', ERROR: 'Failed' };

const UNITS = { lines: ['line', 'lines'], rows: ['row', 'rows'], passages: ['passage', 'passages'] };

const count = (number) => number.toLocaleString('en');

function counted(number, unit) {
  const [one, many] = UNITS[unit] ?? ['record', 'records'];
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** `2026-03-01 02:30:00 UTC`; seconds' fractions only where they say something. */
export function utc(value) {
  const time = new Date(value);
  if (typeof value !== 'string' || Number.isNaN(time.getTime())) return 'an unknown time';
  return `${time.toISOString().replace('T', ' ').replace(/(\.000)?Z$/, '')} UTC`;
}

function windowText({ start, end }) {
  if (start && end) return `From ${utc(start)} to ${utc(end)}.`;
  if (start) return `From ${utc(start)} on, with no end.`;
  if (end) return `Up to ${utc(end)}, with no start.`;
  return 'Not limited to a time window.';
}

/** Coverage as sentences: the window, the counts, and whether absence would mean something. */
export function coverageSentences(coverage) {
  if (!coverage || typeof coverage !== 'object') return ['Nothing is known about what was covered.'];
  const { unit, scanned, matched = 0, shown = 0, complete, notes } = coverage;
  const looked = Number.isFinite(scanned) ? `${counted(scanned, unit)} looked at, ` : '';
  const counts = `${looked}${count(matched)} matched, ${count(shown)} shown.`;
  const extent = complete
    ? 'Complete: nothing that matched was left out.'
    : 'Not complete: there may be more than what is shown.';
  return [
    ...(unit === 'lines' || coverage.start || coverage.end ? [windowText(coverage)] : []),
    `${counts[0].toUpperCase()}${counts.slice(1)}`,
    extent,
    ...(Array.isArray(notes) ? notes.filter((note) => typeof note === 'string') : []),
  ];
}

export function elapsedText(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function exactSeconds(milliseconds) {
  return `${(Math.max(0, milliseconds) / 1000).toFixed(1)} s`;
}

/** `just now`, `5 min ago`, `3 h ago`, then the date. */
export function ago(milliseconds, now) {
  const minutes = Math.floor(Math.max(0, now - milliseconds) / 60_000);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  return new Date(milliseconds).toISOString().slice(0, 10);
}
