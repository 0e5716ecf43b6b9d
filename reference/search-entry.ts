/** What the search finds: its kind, title, page, and further text. */
export type SearchEntry = { kind: 'operation' | 'guide' | 'error' | 'field'; title: string; url: string; text: string }
