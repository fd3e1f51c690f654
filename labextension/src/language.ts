/**
 * Texts that the backend sends in several languages.
 */

/** The one for a language, as JupyterLab calls it (`zh-CN`). Keys are `zh_CN` or `zh`; else it is that of `en`. */
export function inLocale<T>(
  texts: Readonly<Record<string, T>> | undefined,
  language: string
): T | undefined {
  return (
    texts?.[language.replace('-', '_')] ??
    texts?.[language.slice(0, 2)] ??
    texts?.en
  );
}
