/**
 * Which of the backend's texts a page in some language shows.
 */

import { inLocale } from '../src/language';

describe('a text of the backend', () => {
  const texts = { en: 'english', zh_CN: '中文' };

  it.each([
    ['zh-CN', '中文'],
    ['zh_CN', '中文'],
    ['en', 'english'],
    ['de-DE', 'english']
  ])('for JupyterLab in %s is %s', (language, text) => {
    expect(inLocale(texts, language)).toBe(text);
  });

  it('may be kept by the language alone', () => {
    expect(inLocale({ en: 'english', zh: '中文' }, 'zh-CN')).toBe('中文');
  });

  it('is not there where the backend sends none', () => {
    expect(inLocale(undefined, 'zh-CN')).toBeUndefined();
    expect(inLocale({ zh_CN: '中文' }, 'de')).toBeUndefined();
  });
});
