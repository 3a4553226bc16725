"""The whole product with an issuer: who connects is who signed in."""

import pytest
from websockets.exceptions import InvalidStatus

from superbizagent.adapters.sign_in.tokens import principal_name
from tests.integration.product.conftest import Start
from tests.oidc_issuer import oidc_issuer

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.spec("SEC-5", "ISO-2"),
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
]


async def test_only_who_signed_in_connects_and_sees_only_their_own(start: Start) -> None:
    async with oidc_issuer() as issuer, start(issuer=issuer) as product:
        ada = await product.connect(issuer.token(sub="ada"))
        assert ada.socket.subprotocol == "superbizagent"
        frames = await ada.run("What can you do?")
        assert frames[-1]["outcome"] == "SUCCESS"
        session_id = frames[0]["sessionId"]

        bob = await product.connect(issuer.token(sub="bob"))
        await bob.send(action="history", sessionId=session_id)
        assert (await bob.receive())["code"] == "SESSION_NOT_FOUND"
        await bob.ask("What can you do?", session_id)
        assert (await bob.receive())["code"] == "SESSION_NOT_FOUND"
        assert (await bob.history())[0]["sessions"] == []

        # Ada again, by another token.
        again = await product.connect(issuer.token(sub="ada", scope="more"))
        assert [entry["sessionId"] for entry in (await again.history())[0]["sessions"]] == [session_id]
        principals = {row["principal"] for row in await product.rows("ws_connection")}
        assert principals == {principal_name(issuer.url, name) for name in ("ada", "bob")}

        refusals = {
            None: 401,
            "no-token": 401,
            issuer.token(exp=1): 401,
            issuer.token(iss="https://elsewhere.example.com"): 401,
            issuer.token(aud="elsewhere"): 403,
        }
        for token, status in refusals.items():
            with pytest.raises(InvalidStatus) as caught:
                await product.connect(token)
            assert caught.value.response.status_code == status
        assert len(await product.rows("ws_connection")) == 3
