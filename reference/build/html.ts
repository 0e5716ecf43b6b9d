/** A piece of HTML whose values are escaped. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Value = Html | string | number | false | undefined | null | readonly Value[]

export const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

function textOf(value: Value): string {
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map(textOf).join('')
  return value === false || value === undefined || value === null ? '' : escapeHtml(`${value}`)
}

/** Joins a template with escaped values. Lists are joined without a separator; false and undefined are left out. */
export const html = (parts: TemplateStringsArray, ...values: Value[]): Html =>
  new Html(parts.map((part, index) => part + textOf(values[index])).join(''))
