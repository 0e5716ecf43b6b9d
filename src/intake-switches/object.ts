import { DurableObject } from 'cloudflare:workers'
import { type IntakeClosure, type IntakeKind, intakeKinds } from '@agent-trading-service/protocol/intake-kind'

/** What the operator changes: the reason for which a kind is closed, or null to open it. */
export type IntakeChange = { kind: IntakeKind; reason: string | null }

/** Stores which kinds of intake are closed. There is one object per deployment. */
export class IntakeSwitchesObject extends DurableObject<Env> {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    ctx.storage.sql.exec(
      'CREATE TABLE IF NOT EXISTS closure (kind TEXT PRIMARY KEY, reason TEXT NOT NULL, since INTEGER NOT NULL) WITHOUT ROWID',
    )
  }

  /** Returns the closed kinds. */
  closures(): IntakeClosure[] {
    const rows = this.ctx.storage.sql.exec<IntakeClosure>('SELECT kind, reason, since FROM closure ORDER BY kind')
    return rows.toArray().filter(({ kind }) => Object.hasOwn(intakeKinds, kind))
  }

  /** Applies all changes at once and returns the closed kinds. A kind that is closed already keeps its time. */
  change(changes: readonly IntakeChange[]): IntakeClosure[] {
    const { sql } = this.ctx.storage
    for (const { kind, reason } of changes)
      if (reason === null) sql.exec('DELETE FROM closure WHERE kind = ?', kind)
      else
        sql.exec(
          'INSERT INTO closure VALUES (?1, ?2, ?3) ON CONFLICT (kind) DO UPDATE SET reason = ?2',
          kind,
          reason,
          Math.floor(Date.now() / 1000),
        )
    return this.closures()
  }
}
