// Public content as elements, one function a content type.

import { FALLBACK_REASONS, MISSING_CONTEXT } from '../words.js';
import { h, prose, records, section, text, texts } from './element.js';
import { checkedView, openers, referenceView, sourceTitle, sourceView, unseenQuotes } from './evidence.js';

const VIEWS = {
  SYSTEM_CHAT: (content) => ({ label: 'Answer', body: [prose(content.text)] }),
  KNOWLEDGE_ANSWER: knowledge,
  DIAGNOSIS: diagnosis,
  FALLBACK: fallback,
};

/** `{ kind, label, body }` of a content; a type this page doesn't know is shown as it came. */
export function answerView(content) {
  const kind = Object.hasOwn(VIEWS, content.type) ? content.type : 'UNKNOWN';
  const view = VIEWS[kind] ?? unknown;
  return { kind, ...view(content) };
}

function unknown(content) {
  return {
    label: 'Answer',
    body: [
      h('p', {}, 'This answer has a form this page doesn’t know. Reload the page: it may be out of date.'),
      h('pre', { class: 'detail', dir: 'auto' }, JSON.stringify(content, null, 2)),
    ],
  };
}

function diagnosis(content) {
  const sources = records(content.sources);
  const claims = records(content.claims).map((claim) => claimView(claim, sources));
  return {
    label: 'Diagnosis',
    body: [
      prose(content.conclusion, 'prose conclusion'),
      claims.length ? h('section', {}, h('h4', {}, 'What shows it'), h('ol', { class: 'claims' }, claims)) : null,
      section('Next steps', texts(content.nextSteps), { ordered: true }),
      text(content.scope).trim() ? h('section', {}, h('h4', {}, 'Looked at'), prose(content.scope)) : null,
      section('Limitations', texts(content.limitations)),
      sources.length ? allEvidence(sources) : null,
    ],
  };
}

function claimView(claim, sources) {
  const quotes = texts(claim.quotes);
  const cited = texts(claim.sourceIds).map((id) => ({ id, source: sources.find((source) => source.id === id) }));
  const unseen = unseenQuotes(quotes, cited.flatMap(({ source }) => source ?? []));
  const { buttons, place } = openers(
    cited.filter(({ source }) => source).map(({ id, source }) => ({
      label: id,
      title: sourceTitle(source),
      render: () => [...sourceView(source, quotes), section('Also quoted, outside this excerpt', unseen)],
    })),
  );
  const gone = cited.filter(({ source }) => !source).map(({ id }) => ` [${id}: not available]`);
  return h('li', {}, h('span', { class: 'prose', dir: 'auto' }, text(claim.text)), ' ', buttons, gone, place);
}

function allEvidence(sources) {
  const rows = sources.map((source) =>
    h('details', {}, h('summary', {}, `[${text(source.id)}] `, sourceTitle(source)), h('div', { class: 'panel' }, sourceView(source))),
  );
  return h('section', { class: 'evidence' }, h('h4', {}, 'All evidence'), rows);
}

function knowledge(content) {
  const references = records(content.references);
  const numberOf = new Map();
  for (const { documentId } of references) if (!numberOf.has(documentId)) numberOf.set(documentId, numberOf.size + 1);
  const items = records(content.items).map((item) => itemView(item, references, numberOf));
  const rows = references.map((reference) =>
    h('li', {}, h('span', { class: 'quiet' }, `[${numberOf.get(reference.documentId)}] `), referenceView(reference)),
  );
  return {
    label: 'From the runbooks',
    body: [
      items.length ? items : prose('The documents found say nothing about this.'),
      rows.length ? h('section', {}, h('h4', {}, 'Documents'), h('ul', { class: 'plain' }, rows)) : null,
      section('Limitations', texts(content.limitations)),
    ],
  };
}

function itemView(item, references, numberOf) {
  const known = [...new Set(texts(item.documentIds))].filter((id) => numberOf.has(id));
  const { buttons, place } = openers(
    known.map((id) => ({
      label: String(numberOf.get(id)),
      title: 'Document',
      render: () => references.filter((reference) => reference.documentId === id).map(referenceView),
    })),
  );
  return h('div', { class: 'item' }, h('span', { class: 'prose', dir: 'auto' }, text(item.text)), ' ', buttons, place);
}

function fallback(content) {
  const reason = Object.hasOwn(FALLBACK_REASONS, content.reason) ? FALLBACK_REASONS[content.reason] : '';
  const checked = records(content.checked).map(checkedView);
  const missing = texts(content.missingContext).map((code) => (Object.hasOwn(MISSING_CONTEXT, code) ? MISSING_CONTEXT[code] : code));
  return {
    label: 'No conclusion',
    body: [
      reason ? h('p', { class: 'conclusion' }, reason) : null,
      text(content.text).trim() ? prose(content.text) : null,
      section('Please tell', missing),
      section('What you can do next', texts(content.nextSteps), { ordered: true }),
      checked.length ? h('section', {}, h('h4', {}, 'What was checked'), h('ul', { class: 'plain' }, checked)) : null,
    ],
  };
}
