/** What every page gets: the named parts of its path, and its query. */
export type PageProps = { params: Record<string, string>; query: URLSearchParams }
