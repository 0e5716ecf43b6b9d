import type { ComponentChildren } from 'preact'

export type Step = {
  name: string
  text: ComponentChildren
  state: 'done' | 'current' | 'ahead' | 'failed'
}

const STATE_TEXT = { done: 'done', current: 'now', ahead: 'to come', failed: 'failed' }

/** The steps of a life, with where it is. */
export const Steps = ({ steps }: { steps: Step[] }) => (
  <ol class="steps">
    {steps.map(({ name, text, state }) => (
      <li key={name} class={state} aria-current={state === 'current' ? 'step' : undefined}>
        <b>{name}</b>
        <span class="hidden"> ({STATE_TEXT[state]})</span>
        <span class="step-text">{text}</span>
      </li>
    ))}
  </ol>
)
