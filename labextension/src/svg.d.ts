/** The builder loads these files as text. */
declare module '*.svg' {
  const text: string;
  export default text;
}
