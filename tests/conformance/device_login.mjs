// Logs in with openid-client at the issuer and client id from the environment. Prints two lines of
// JSON: the codes, and after the approval the answer with the token.
import * as client from "openid-client";

const { ISSUER, CLIENT_ID, SCOPE } = process.env;

const server = await client.discovery(new URL(ISSUER), CLIENT_ID, undefined, client.None(), {
    algorithm: "oauth2",
    execute: [client.allowInsecureRequests],
});
const codes = await client.initiateDeviceAuthorization(server, { scope: SCOPE });
console.log(JSON.stringify(codes));
try {
    console.log(JSON.stringify(await client.pollDeviceAuthorizationGrant(server, codes)));
} catch (error) {
    console.log(JSON.stringify({ error: error.error ?? String(error) }));
}
