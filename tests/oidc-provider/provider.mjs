// SPDX-License-Identifier: Apache-2.0
// A provider for tests: node provider.mjs '{"issuer": ..., "port": ..., "client": {...}, "key": {...}}'. It prints `ready`.
// Its pages are those that oidc-provider has for development: any name logs in with any password.
import Provider from "oidc-provider";

const options = JSON.parse(process.argv[2]);
const provider = new Provider(options.issuer, {
  clients: [options.client],
  jwks: { keys: [options.key] },
  findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id, name: `Name of ${id}` }) }),
  conformIdTokenClaims: false,
  claims: { openid: ["sub"], profile: ["name"], acr: null, auth_time: null, iss: null, sid: null },
  acrValues: ["password"],
  cookies: { keys: ["a secret for tests"] },
  features: { devInteractions: { enabled: true }, backchannelLogout: { enabled: true }, rpInitiatedLogout: { enabled: true } },
  // Removes the dispatcher, which denies requests to loopback addresses.
  fetch: (url, { dispatcher: _dispatcher, ...rest }) => fetch(url, rest),
  rotateRefreshToken: true,
  ttl: { AccessToken: 3, AuthorizationCode: 60, Grant: 600, IdToken: 300, Interaction: 600, RefreshToken: 600, Session: 600 },
});
for (const event of ["grant.revoked", "refresh_token.consumed", "backchannel.success", "backchannel.error", "server_error"])
  provider.on(event, (...args) => console.log(event, args.find((arg) => arg instanceof Error) ?? ""));
provider.listen(options.port, "127.0.0.1", () => console.log("ready"));
