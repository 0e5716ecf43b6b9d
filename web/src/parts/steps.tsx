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
        <StepMark state={state} />
        <b>{name}</b>
        <span class="hidden"> ({STATE_TEXT[state]})</span>
        <span class="step-text">{text}</span>
      </li>
    ))}
  </ol>
)

const MARKS = { done: 'M6.5 11.5l3 3 6-6.5', failed: 'M7 7l8 8M15 7l-8 8', current: '', ahead: '' }

const StepMark = ({ state }: Pick<Step, 'state'>) => (
  <svg class="step-mark" width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
    <circle cx="11" cy="11" r="10" />
    {state === 'current' && <circle class="inner" cx="11" cy="11" r="4" />}
    <path d={MARKS[state]} />
  </svg>
)
