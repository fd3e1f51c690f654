import { decode, decodeGbk, encode, sentText } from '../src/submit/encoding';

const utf8 = (text: string) => new TextEncoder().encode(text);
const utf16 = (text: string, little: boolean) =>
  Uint8Array.from(
    [...`\ufeff${text}`].flatMap(unit => {
      const code = unit.charCodeAt(0);
      return little ? [code & 255, code >> 8] : [code >> 8, code & 255];
    })
  );

describe('a file as text', () => {
  it.each([
    ['plain', utf8('{"名": 1}\n')],
    ['CRLF', utf8('a: 1\r\nb: 2\r\n')],
    ['CR', utf8('a: 1\rb: 2\r')],
    ['mixed line breaks', utf8('a\r\nb\nc\rd\r\n')],
    ['a byte order mark', utf8('\ufeff{}\r\n')],
    ['UTF-16, little', utf16('名: 1\r\n', true)],
    ['UTF-16, big', utf16('名: 1\n', false)],
    ['nothing', utf8('')]
  ])('comes back byte for byte: %s', (_, bytes) => {
    const { text, written } = decode(bytes)!;
    expect(text).not.toContain('\r');
    expect([...encode(written, text)]).toEqual([...bytes]);
  });

  it('keeps its line breaks and mark when it is changed', () => {
    const { text, written } = decode(utf8('\ufeffa\r\nb\r\n'))!;
    expect(sentText(written, `${text}c\n`)).toBe('\ufeffa\r\nb\r\nc\r\n');
  });

  it('is sent as UTF-8 when it was UTF-16', () => {
    const { text, written } = decode(utf16('名\r\n', true))!;
    expect(sentText(written, text)).toBe('名\r\n');
  });

  it('is not taken for UTF-8 when it is GBK', () => {
    const bytes = Uint8Array.from([0xd6, 0xd0, 0xce, 0xc4, 0x0a]);
    expect(decode(bytes)).toBeNull();
    const { text, written } = decodeGbk(bytes)!;
    expect(text).toBe('中文\n');
    expect([...encode(written, text)]).toEqual([...utf8('中文\n')]);
  });

  it('is refused when it is no text', () => {
    const bytes = Uint8Array.from([0xff, 0x00, 0xff, 0xff]);
    expect(decode(bytes)).toBeNull();
    expect(decodeGbk(bytes)).toBeNull();
  });
});
