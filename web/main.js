// Puts the page together.

import { Client } from './client.js';
import { createConnection } from './connection.js';
import { Conversations } from './conversations.js';
import { isId } from './frames.js';
import { createSignIn, signInSettings } from './sign_in.js';
import { createStorage } from './storage.js';
import { connectionText, DEMO_BANNER, errorText, stepText } from './words.js';
import { createComposer } from './view/composer.js';
import { createNotices } from './view/notices.js';
import { createFollower } from './view/scroll.js';
import { createSessions } from './view/sessions.js';
import { createTranscript } from './view/transcript.js';

const byId = (id) => document.getElementById(id);
const now = () => Date.now();
const demo = { on: false };
const SUBPROTOCOL = 'superbizagent';
let configured = null;
let signIn = null;

/** Where to connect and what to offer; a config that can't be used is fatal, an absent one is retried. */
async function address() {
  configured ??= await readConfig();
  // A browser can set no header of a WebSocket but this one, so the token travels as a subprotocol.
  const protocols = signIn ? [SUBPROTOCOL, `bearer.${await signIn.token()}`] : [];
  return { url: configured, protocols };
}

async function readConfig() {
  const response = await fetch('config.json', { cache: 'no-store' });
  if (!response.ok) throw new Error('config.json is not there');
  let url;
  try {
    const config = await response.json();
    demo.on = config.model === 'scripted-demo';
    byId('model-banner').textContent = DEMO_BANNER;
    byId('model-banner').hidden = !demo.on;
    url = socketAddress(config.websocketUrl);
    if (config.signIn) signIn = createSignIn({ settings: signInSettings(config.signIn), area: safeSessionStorage(), now });
  } catch (error) {
    throw Object.assign(new Error('config.json is not usable', { cause: error }), { fatal: true });
  }
  await completeSignIn();
  return url;
}

async function completeSignIn() {
  try {
    await signIn?.complete();
  } catch (error) {
    notices.show('sign-in', `Signing in didn’t work. ${error.message}`);
  }
}

function socketAddress(value) {
  if (typeof value !== 'string' || !value) throw new Error('websocketUrl is missing');
  const url = new URL(value, location.href);
  if (url.protocol === 'http:') url.protocol = 'ws:';
  if (url.protocol === 'https:') url.protocol = 'wss:';
  if (!['ws:', 'wss:'].includes(url.protocol)) throw new Error('websocketUrl is no WebSocket address');
  url.hash = '';
  return url.href;
}

/** 128 random bits; randomUUID exists in secure contexts only. */
function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

function sessionInHash() {
  const value = new URLSearchParams(location.hash.slice(1)).get('session');
  return isId(value) ? value : null;
}

function showConnection(state) {
  const node = byId('connection');
  node.dataset.state = state.name;
  byId('connection-text').textContent = connectionText(state);
  byId('retry').hidden = !['waiting', 'stopped'].includes(state.name) || state.reason === 'signedOut';
  byId('sign-in').hidden = !signIn || state.name !== 'stopped' || state.reason === 'config';
}

function announce(words) {
  byId('announcer').textContent = words;
}

function announceTurn({ turn, ended, stored }) {
  if (turn.conversation !== conversations.shown || stored) return;
  if (!ended) {
    if (turn.state === 'running' && turn.steps.length) announce(stepText(turn.steps.at(-1)));
  } else if (turn.state === 'done') announce('The answer is there.');
  else if (turn.state === 'cancelled') announce('Cancelled.');
  else announce(errorText(turn.failure ?? {}));
}

function notify(kind, { code, message }) {
  if (kind === 'gateway') {
    notices.show('gateway', `The gateway reports: “${message}”. A message may not have arrived; a running question goes on.`);
  } else {
    notices.show('service', errorText({ code, message }), code);
  }
}

const conversations = new Conversations({ now });
const storage = createStorage(safeSessionStorage());
const notices = createNotices(byId('notices'));
const connection = createConnection({
  address,
  onState: showConnection,
  onOpen: () => client.onOpen(),
  onRefused: () => signIn?.doubt(),
  onData: (data) => client.onData(data),
});
const client = new Client({ connection, conversations, storage, now, newId, notify });

function safeSessionStorage() {
  try {
    return window.sessionStorage;
  } catch {
    return { getItem: () => null, setItem() {}, removeItem() {} };
  }
}

const follower = createFollower(byId('transcript'), byId('new-messages'));
const actions = {
  sendAgain: (turn) => client.dispatch(turn),
  askAgain(turn) {
    const reason = client.askAgain(turn);
    if (reason === 'busy') notices.show('refusal', 'A question is being answered in this conversation. Wait for it or cancel it.', 'busy');
    else if (reason) notices.show('refusal', 'This question can’t be sent as it is. Edit it.', reason);
    else transcript.reveal();
  },
  edit(turn) {
    composer.add(turn.query);
    if (turn.state === 'refused') conversations.forget(turn);
  },
  askInNew(turn) {
    const { query } = turn;
    if (turn.state === 'refused') conversations.forget(turn);
    conversations.showNew();
    client.ask(conversations.shown, query);
  },
  fill: (text) => composer.add(text),
  earlier: (conversation) => client.wantTurns(conversation, conversation.before),
  newConversation,
};

function newConversation() {
  conversations.showNew();
  closeSidebar();
  composer.focus();
}

function closeSidebar() {
  document.body.classList.remove('sidebar-open');
  byId('toggle-sessions').setAttribute('aria-expanded', 'false');
}

const hashed = sessionInHash();
if (hashed) conversations.showSession(hashed);
client.restore();
const transcript = createTranscript({ container: byId('transcript'), follower, conversations, actions, demo, now });
createSessions({
  list: byId('session-list'),
  conversations,
  now,
  onChoose(conversation) {
    if (conversation !== conversations.shown) conversations.show(conversation);
    closeSidebar();
    composer.focus();
  },
});
const composer = createComposer({
  form: byId('composer'),
  conversations,
  client,
  storage,
  notices,
  onSent: () => transcript.reveal(),
});

conversations.listen((event) => {
  if (event.type === 'turn') announceTurn(event);
  if (event.type === 'shown') onShown(event);
});

function onShown({ bound = false }) {
  const { shown } = conversations;
  const hash = shown.sessionId ? `#session=${shown.sessionId}` : '';
  if (location.hash !== hash) {
    const url = `${location.pathname}${location.search}${hash}`;
    if (bound) history.replaceState(null, '', url);
    else history.pushState(null, '', url);
  }
  document.title = shown.title ? `${shown.title} · SuperBizAgent` : 'SuperBizAgent';
  if (!bound) client.wantTurns(shown);
}

window.addEventListener('popstate', followHash);
function followHash() {
  const sessionId = sessionInHash();
  if (sessionId && sessionId !== conversations.shown.sessionId) conversations.showSession(sessionId);
  else if (!sessionId && conversations.shown.sessionId) conversations.showNew();
}

byId('retry').addEventListener('click', () => connection.retry());
byId('sign-in').addEventListener('click', () => signIn.begin());
byId('new-conversation').addEventListener('click', newConversation);
byId('new-messages').addEventListener('click', () => {
  transcript.reveal();
  composer.focus();
});
byId('toggle-sessions').addEventListener('click', () => {
  const open = document.body.classList.toggle('sidebar-open');
  byId('toggle-sessions').setAttribute('aria-expanded', String(open));
  if (open) byId('new-conversation').focus();
});
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.isComposing || event.keyCode === 229 || event.repeat) return;
  if (document.body.classList.contains('sidebar-open')) {
    closeSidebar();
    byId('toggle-sessions').focus();
  } else composer.cancelActive();
});
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') client.onVisible();
});
window.addEventListener('online', () => {
  if (connection.state.name === 'stopped' && connection.state.reason === 'unreachable') connection.retry();
  else connection.nudge();
});

transcript.rebuild();
composer.focus();
client.start();
