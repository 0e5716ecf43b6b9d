import { jsonTokens } from '../json-tokens.ts'
import type { RequestValues, SampleOperation } from '../sample-types.ts'
import { type Language, languages, sampleOf, targetOf } from '../samples.ts'
import { readEvents } from './event-reader.ts'

const TIMEOUT_MS = 30_000
const MAX_EVENTS = 100
const HOUR_SECONDS = 3_600

/** Sends the operation of the page with the values of its form, and keeps the samples in step with them. */
export function enableTrying(): void {
  const form = document.querySelector<HTMLFormElement>('[data-try]')
  const embedded = document.querySelector('#operation')?.textContent
  const result = document.querySelector<HTMLElement>('[data-result]')
  const state = document.querySelector<HTMLElement>('[data-state]')
  const stop = document.querySelector<HTMLButtonElement>('[data-stop]')
  const submit = form?.querySelector<HTMLButtonElement>('[type=submit]')
  if (!form || !embedded || !result || !state || !stop || !submit) return
  const { operation } = JSON.parse(embedded) as { operation: SampleOperation; values: RequestValues }
  moveDeadlines(form)

  const update = () => showSamples(operation, readForm(form))
  form.addEventListener('input', update)
  update()

  let abort: AbortController | undefined
  stop.addEventListener('click', () => abort?.abort())
  form.addEventListener('submit', async event => {
    event.preventDefault()
    const values = readForm(form)
    if (values === undefined) {
      state.textContent = 'The body is not JSON.'
      return
    }
    abort?.abort()
    const controller = new AbortController()
    abort = controller
    stop.hidden = false
    submit.disabled = true
    result.hidden = false
    try {
      await (operation.isStream ? stream : send)({ operation, values, controller, result, state })
    } finally {
      stop.hidden = true
      submit.disabled = false
    }
  })
}

type Attempt = {
  operation: SampleOperation
  values: RequestValues
  controller: AbortController
  result: HTMLElement
  state: HTMLElement
}

/** Returns the values of the form; undefined if its body is not JSON. */
function readForm(form: HTMLFormElement): RequestValues | undefined {
  const values: RequestValues = { path: {}, query: {}, headers: {} }
  for (const [name, value] of new FormData(form)) {
    const [place, parameter] = name.split(':')
    if (place === 'body') {
      try {
        values.body = JSON.parse(`${value}`)
      } catch {
        return undefined
      }
    } else if ((place === 'path' || place === 'query') && parameter !== undefined) values[place][parameter] = `${value}`
  }
  return values
}

function showSamples(operation: SampleOperation, values: RequestValues | undefined): void {
  if (values === undefined) return
  for (const language of Object.keys(languages) as Language[]) {
    const code = document.querySelector(`#panel-${language} code`)
    const sample = sampleOf(language, location.origin, operation, values)
    if (code && sample !== undefined) code.textContent = sample
  }
}

/** Moves recorded deadlines ahead, so that a prefilled request is not expired. */
function moveDeadlines(form: HTMLFormElement): void {
  const deadline = `${(Math.floor(Date.now() / 1000 / HOUR_SECONDS) + 2) * HOUR_SECONDS}`
  const body = form.querySelector('textarea')
  if (body) body.value = body.value.replaceAll(/("deadline": )"\d+"/g, `$1"${deadline}"`)
  const parameter = form.querySelector<HTMLInputElement>('[name="query:deadline"]')
  if (parameter?.value) parameter.value = deadline
}

async function send({ operation, values, controller, result, state }: Attempt): Promise<void> {
  state.textContent = 'Sending…'
  const started = performance.now()
  try {
    const response = await fetch(targetOf(operation.path, values), {
      method: operation.method.toUpperCase(),
      signal: AbortSignal.any([controller.signal, AbortSignal.timeout(TIMEOUT_MS)]),
      headers: values.body === undefined ? {} : { 'Content-Type': 'application/json' },
      ...(values.body !== undefined && { body: JSON.stringify(values.body) }),
    })
    const text = await response.text()
    state.textContent = `${response.status} in ${Math.round(performance.now() - started)} ms`
    const requestId = response.headers.get('X-Request-Id') ?? ''
    result.replaceChildren(element('p', 'request-id', `Request id ${requestId}`), codeBlock(formatted(text)))
  } catch (error) {
    result.replaceChildren()
    state.textContent = failure(error)
  }
}

async function stream({ operation, values, controller, result, state }: Attempt): Promise<void> {
  state.textContent = 'Connecting…'
  const list = element('ol', 'events', '')
  list.tabIndex = 0
  list.setAttribute('aria-label', 'Events, newest first')
  result.replaceChildren(list)
  try {
    const response = await fetch(targetOf(operation.path, values), { signal: controller.signal })
    if (!response.ok || response.body === null) {
      state.textContent = `${response.status}`
      result.replaceChildren(codeBlock(formatted(await response.text())))
      return
    }
    state.textContent = 'Open. Waiting for events.'
    let count = 0
    for await (const { id, event, data } of readEvents(response.body)) {
      count++
      const item = document.createElement('li')
      item.append(element('p', 'event', `${event}  ${id}`), codeBlock(formatted(data)))
      list.prepend(item)
      if (list.children.length > MAX_EVENTS) list.lastElementChild?.remove()
      state.textContent = `Open. ${count} ${count === 1 ? 'event' : 'events'}.`
    }
    state.textContent = `The server closed the stream after ${count} events.`
  } catch (error) {
    state.textContent = failure(error)
  }
}

function failure(error: unknown): string {
  const name = error instanceof Error ? error.name : ''
  if (name === 'AbortError') return 'Stopped.'
  return name === 'TimeoutError' ? `No response within ${TIMEOUT_MS / 1000} s.` : 'The service cannot be reached.'
}

function formatted(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** Returns a block of highlighted JSON. Texts are set as text, because agents write some of them. */
function codeBlock(text: string): HTMLElement {
  const block = element('pre', '', '')
  block.tabIndex = 0
  block.setAttribute('aria-label', 'Response')
  const code = document.createElement('code')
  code.append(
    ...jsonTokens(text).map(token => (token.kind === 'plain' ? token.text : element('span', token.kind, token.text))),
  )
  block.append(code)
  return block
}

function element(name: string, className: string, text: string): HTMLElement {
  const created = document.createElement(name)
  if (className !== '') created.className = className
  created.textContent = text
  return created
}
