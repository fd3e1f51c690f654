import type { ISight } from '../src/address';
import { leavesPath, wayTo } from '../src/address';

const LOCAL = {
  url: 'http://a--j.localhost:9000/.pai/signin?ticket=t',
  pathUrl: '/s/a--j/.pai/signin?ticket=t',
  expiresAt: '',
  proof: 'proof',
  isJupyter: false
};
const DOMAIN = { ...LOCAL, url: 'https://a--j.pai.example/.pai/signin?t' };
const HERE = 'http://localhost:8888/base/';
const HUB = 'https://hub.example/user/ada/';
const BELOW_HUB = `${HUB}pai/s/a--j/.pai/signin?ticket=t`;
const FROM_ROOT = '<script src="/static/app.js"></script>';
const RELATIVE = '<script src="static/app.js"></script><a href="//x.example/">';

const PORT = 'http://a--j.localhost:41234/.pai/local?key=k';

/** A browser that reaches these hosts, sees that page below the path, and is led to a port of its computer or not. */
function sight(
  hosts: readonly string[],
  page: string | null,
  local: string | null = null
): ISight {
  return {
    reads: address =>
      Promise.resolve(hosts.includes(new URL(address).hostname)),
    page: () => Promise.resolve(page),
    local: service => Promise.resolve(service === 'a--j' ? local : 'wrong')
  };
}

describe('wayTo', () => {
  const local = 'a--j.localhost';
  const named = 'a--j.pai.example';

  it.each([
    ['own, on one computer', LOCAL, HERE, [local], FROM_ROOT, LOCAL.url],
    ['own, by a domain', DOMAIN, HUB, [named], FROM_ROOT, DOMAIN.url],
    // That is another computer's name there, whatever answers to it.
    ['path, from another host', LOCAL, HUB, [local], RELATIVE, BELOW_HUB],
    ['path, unknown names', DOMAIN, HUB, [], RELATIVE, BELOW_HUB],
    ['path, not running', LOCAL, HUB, [], null, BELOW_HUB]
  ])('%s', async (_, ticket, baseUrl, hosts, page, address) => {
    const way = await wayTo(ticket, baseUrl, sight(hosts, page));
    expect(way).toEqual({ address });
  });

  it('leads to a Jupyter below the path whatever its page names', async () => {
    const ticket = { ...LOCAL, isJupyter: true };
    const way = await wayTo(ticket, HUB, sight([], FROM_ROOT));
    expect(way).toEqual({ address: BELOW_HUB });
  });

  it.each([
    [LOCAL, HERE, { kind: 'port', port: '9000' }],
    [LOCAL, HUB, { kind: 'domain' }],
    [DOMAIN, HUB, { kind: 'names', domain: 'pai.example' }]
  ])('says what is missing (%#)', async (ticket, baseUrl, missing) => {
    const way = await wayTo(ticket, baseUrl, sight([], FROM_ROOT));
    expect(way).toEqual({ missing });
  });

  it('puts a service of another user at its own address or nowhere', async () => {
    const guest = { ...LOCAL, pathUrl: '', isJupyter: true };
    const own = await wayTo(guest, HERE, sight([local], null));
    expect(own).toEqual({ address: guest.url });
    const way = await wayTo(guest, HUB, sight([], null));
    expect(way).toEqual({ missing: { kind: 'guest' } });
  });

  it.each([
    ['backend elsewhere', LOCAL, HERE],
    ['unknown names', DOMAIN, HERE]
  ])(
    'leads through a port of this computer (%s)',
    async (_, ticket, baseUrl) => {
      const way = await wayTo(ticket, baseUrl, sight([], FROM_ROOT, PORT));
      expect(way).toEqual({ address: PORT });
    }
  );

  it('asks no Jupyter server of another computer for a port', async () => {
    const way = await wayTo(LOCAL, HUB, sight([], FROM_ROOT, PORT));
    expect(way).toEqual({ missing: { kind: 'domain' } });
  });

  it('knows a page that was told its path', () => {
    const path = '/user/ada/pai/s/a--j/';
    expect(leavesPath(`<img SRC = '${path}x.png'>`, path)).toBe(false);
    expect(leavesPath("<img src='/user/x.png'>", path)).toBe(true);
  });
});
