// A certified provider of OpenID Connect: `node oidc_provider.mjs PORT GROUPS.json`, where any name and password sign in.
// The file has the groups of each user. It runs in a folder with the package oidc-provider.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.cwd()}/`);
const { default: Provider } = await import(
  pathToFileURL(require.resolve('oidc-provider')).href
);
const [, , port, groups] = process.argv;
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'pai',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: [
        'authorization_code',
        'urn:ietf:params:oauth:grant-type:device_code'
      ],
      redirect_uris: ['http://127.0.0.1/'],
      response_types: ['code']
    }
  ],
  claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
  conformIdTokenClaims: false,
  cookies: { keys: ['a key of the tests'] },
  features: { deviceFlow: { enabled: true } },
  pkce: { required: () => true },
  findAccount: (_, name) => ({
    accountId: name,
    claims: () => ({
      sub: name,
      preferred_username: name.split('@')[0],
      groups: JSON.parse(readFileSync(groups, 'utf8'))[name] ?? []
    })
  })
});
provider.listen(Number(port), '127.0.0.1');
