import { expect, it } from 'vitest'
import { findEditedMigrations, hashesOf, readMigrations, readReleased } from '../../scripts/released-migrations.ts'

const first = { '0001_history.sql': 'CREATE TABLE cursor (id INTEGER);\n' }
const released = hashesOf(first)

it('no migration of a release has been edited, renamed or overtaken', () => {
  expect(findEditedMigrations(readReleased(), readMigrations())).toEqual([])
})

it('a migration may be edited until a release has it, and new ones follow', () => {
  expect(findEditedMigrations({}, first)).toEqual([])
  expect(findEditedMigrations(released, { ...first, '0002_notes.sql': 'CREATE TABLE note (id INTEGER);\n' })).toEqual(
    [],
  )
})

it('an edited, a renamed and an earlier migration are named', () => {
  expect(findEditedMigrations(released, { '0001_history.sql': 'CREATE TABLE cursor (id TEXT);\n' })).toEqual([
    '0001_history.sql was edited, but a release has it: restore it, and add a migration with the next number.',
  ])
  expect(findEditedMigrations(released, { '0001_index.sql': first['0001_history.sql'] })).toEqual([
    '0001_history.sql is gone, but a release has it: restore it, and add a migration with the next number.',
  ])
  expect(findEditedMigrations(released, { ...first, '0000_before.sql': '' })).toEqual([
    '0000_before.sql comes before 0001_history.sql, which a release has: give it the next number.',
  ])
})
