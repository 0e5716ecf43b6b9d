/** Runs the actions of one holder one after another, in the order in which they were asked for. */
export type InTurn = <Result>(holder: string, act: () => Promise<Result>) => Promise<Result>

/** Returns a queue for each holder. An action that fails does not hold up the next one. */
export function createTurns(): InTurn {
  const last = new Map<string, Promise<unknown>>()
  return (holder, act) => {
    const turn = (last.get(holder) ?? Promise.resolve()).then(act)
    const ended = turn.then(
      () => {},
      () => {},
    )
    last.set(holder, ended)
    void ended.then(() => {
      if (last.get(holder) === ended) last.delete(holder)
    })
    return turn
  }
}
