// What outlives a reload of this tab: drafts, and questions that have no terminal frame yet.

/** Wraps a Storage that may be full, disabled, or hold what another version wrote. */
export function createStorage(area) {
  const read = (key) => {
    try {
      return JSON.parse(area.getItem(key));
    } catch {
      return null;
    }
  };
  const write = (key, value) => {
    try {
      if (value === null || value === '') area.removeItem(key);
      else area.setItem(key, JSON.stringify(value));
    } catch {
      // The page works without: only a reload would lose what could not be kept.
    }
  };
  const draftKey = (sessionId) => `draft:${sessionId ?? 'new'}`;
  return {
    draft(sessionId) {
      const text = read(draftKey(sessionId));
      return typeof text === 'string' ? text : '';
    },
    keepDraft: (sessionId, text) => write(draftKey(sessionId), text),
    outbox() {
      const entries = read('outbox');
      return Array.isArray(entries) ? entries.filter(isEntry) : [];
    },
    keepOutbox: (entries) => write('outbox', entries.length ? entries : null),
  };
}

function isEntry(entry) {
  return typeof entry?.requestId === 'string' && typeof entry.query === 'string';
}
