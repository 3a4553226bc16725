// Signing in with an OpenID Connect provider from the page alone: authorization code with PKCE (RFC 7636, RFC 9700).

const TOKENS = 'sign-in:tokens';
const PENDING = 'sign-in:pending';
/** A token this near its end is replaced first: a handshake takes its time. */
const EARLY = 60_000;
const ENDPOINTS = ['authorizationEndpoint', 'tokenEndpoint'];
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'];

/** The settings in config.json's `signIn`; throws for ones that can't be used. */
export function signInSettings(value) {
  for (const name of ENDPOINTS) {
    const url = new URL(value[name]);
    const secure = url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.includes(url.hostname));
    if (!secure) throw new Error(`${name} is no https address`);
  }
  if (typeof value.clientId !== 'string' || !value.clientId) throw new Error('clientId is missing');
  const { authorizationEndpoint, tokenEndpoint, clientId, scope = 'openid', audience } = value;
  return Object.freeze({ authorizationEndpoint, tokenEndpoint, clientId, scope, audience });
}

const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const secret = () => base64url(crypto.getRandomValues(new Uint8Array(32)));
const challengeOf = async (verifier) =>
  base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));

/** Nobody is signed in, and only the user can change that. */
class SignedOut extends Error {
  signedOut = true;
}

/** `area` is a Storage of this tab: tokens outlive a reload, and no other tab sees them. */
export function createSignIn({ settings, area, now }) {
  const { clientId } = settings;
  const redirectUri = location.origin + location.pathname;
  let doubtful = false;
  let renewing = null;

  function kept(key) {
    try {
      return JSON.parse(area.getItem(key));
    } catch {
      return null;
    }
  }
  const keep = (key, value) => area.setItem(key, JSON.stringify(value));

  /** Leaves for the provider, who sends the browser back here. */
  async function begin() {
    const [state, verifier] = [secret(), secret()];
    keep(PENDING, { state, verifier, hash: location.hash });
    const url = new URL(settings.authorizationEndpoint);
    const asked = {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope: settings.scope,
      state,
      code_challenge: await challengeOf(verifier),
      code_challenge_method: 'S256',
      ...(settings.audience && { audience: settings.audience }),
    };
    for (const [name, text] of Object.entries(asked)) url.searchParams.set(name, text);
    location.assign(url);
  }

  /** Back from the provider: takes what it sent out of the address. Throws when signing in did not work. */
  async function complete() {
    const sent = new URLSearchParams(location.search);
    if (!sent.has('state') || !(sent.has('code') || sent.has('error'))) return;
    const pending = kept(PENDING);
    area.removeItem(PENDING);
    history.replaceState(null, '', redirectUri + (pending?.hash || location.hash));
    // Another's answer would sign this user in as somebody else.
    if (!pending || sent.get('state') !== pending.state) throw new Error('This was not asked for by this page.');
    if (sent.has('error')) throw new Error(`The provider says “${sent.get('error').slice(0, 100)}”.`);
    await ask({
      grant_type: 'authorization_code',
      code: sent.get('code'),
      redirect_uri: redirectUri,
      code_verifier: pending.verifier,
    });
  }

  /** A token that is good for a while; throws SignedOut, or another error if the provider can't be reached. */
  async function token() {
    const tokens = kept(TOKENS);
    if (!tokens?.access) throw new SignedOut();
    const left = tokens.expiresAt - now();
    if (left > EARLY && !doubtful) return tokens.access;
    if (!tokens.refresh) {
      if (left > 0) return tokens.access;
      forget();
      throw new SignedOut();
    }
    renewing ??= ask({ grant_type: 'refresh_token', refresh_token: tokens.refresh }).finally(() => { renewing = null; });
    try {
      await renewing;
    } catch (error) {
      if (error.signedOut || left <= 0) throw error;
    }
    return kept(TOKENS).access;
  }

  async function ask(fields) {
    const response = await fetch(settings.tokenEndpoint, {
      method: 'POST',
      body: new URLSearchParams({ client_id: clientId, ...fields }),
      credentials: 'omit',
      cache: 'no-store',
    });
    if (response.status >= 400 && response.status < 500) {
      forget();
      throw new SignedOut('The provider doesn’t accept this sign-in any more.');
    }
    if (!response.ok) throw new Error('The provider can’t be reached.');
    const { access_token: access, refresh_token: refresh = fields.refresh_token, expires_in: seconds } = await response.json();
    if (typeof access !== 'string') throw new Error('The provider sent no token.');
    doubtful = false;
    // How long it is good for is the provider's to say; without a word it is used until it is refused.
    keep(TOKENS, { access, refresh, expiresAt: Number.isFinite(seconds) ? now() + seconds * 1_000 : Number.MAX_SAFE_INTEGER });
  }

  function forget() {
    area.removeItem(TOKENS);
  }

  return {
    begin,
    complete,
    token,
    /** The service may have refused the token: the next one is a new one, where there is a way to get it. */
    doubt() {
      doubtful = true;
    },
  };
}
