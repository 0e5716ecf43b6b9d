import type { ComponentChildren, RefObject } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { TableScroll } from './panel.tsx'

/**
 * A column of a table. Without room, each row is a card: its `name` column is the title, its `lead` column stands
 * at the right of the title, and the others follow as pairs of a label and a value: `wide` ones on a line of their own,
 * `text` without a label.
 */
export type Column<Row> = {
  head: string
  cell: (row: Row) => ComponentChildren
  /** What the cell is in its row; an ordinary figure or text by default. */
  part?: 'name' | 'lead' | 'rank' | 'wide' | 'text'
  isNumber?: boolean
  /** Lines may break in its cells. */
  wraps?: boolean
  /** Its head is for screen readers only. */
  isHeadHidden?: boolean
}

type DataTableProps<Row> = {
  /** Names the table for screen readers. */
  label: string
  columns: Column<Row>[]
  rows: Row[]
  keyOf: (row: Row) => string
  isChosen?: (row: Row) => boolean
  /** What stands in place of a table without rows. */
  empty?: ComponentChildren
}

/** Roles that the elements have anyway: some browsers drop a table's roles if its rows are laid out as cards. */
const ROLES = {
  table: { role: 'table' },
  rowgroup: { role: 'rowgroup' },
  row: { role: 'row' },
  columnheader: { role: 'columnheader' },
  rowheader: { role: 'rowheader' },
  cell: { role: 'cell' },
} as const

/** How many rows a narrow screen shows at first. */
const FIRST_ROWS = 6

/** In a narrower frame, in pixels, rows are cards even if the table has room. */
const MIN_WIDTH = 600

/** Returns whether rows are cards because the table has no room in its frame: measured before anything is painted. */
function useCards(frame: RefObject<HTMLElement | null>, rows: unknown): boolean {
  const [width, setWidth] = useState(0)
  const [needed, setNeeded] = useState(MIN_WIDTH)
  const isInCards = width < needed
  const measure = () => {
    const { clientWidth = 0, scrollWidth = 0 } = frame.current ?? {}
    setWidth(clientWidth)
    if (scrollWidth > clientWidth) setNeeded(scrollWidth)
  }
  useLayoutEffect(measure, [isInCards, rows])
  // The width of the table also changes when its typeface arrives.
  useLayoutEffect(() => {
    const observer = new ResizeObserver(measure)
    for (const element of [frame.current, frame.current?.firstElementChild]) if (element) observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return isInCards
}

/**
 * A table that turns its rows into cards where it has no room, and then shows the first ones until the reader asks for
 * all.
 */
export const DataTable = <Row,>({ empty, ...props }: DataTableProps<Row>) =>
  empty !== undefined && props.rows.length === 0 ? empty : <RowTable {...props} />

function RowTable<Row>({ label, columns, rows, keyOf, isChosen }: DataTableProps<Row>) {
  const [isWhole, setWhole] = useState(false)
  const frame = useRef<HTMLDivElement>(null)
  const isInCards = useCards(frame, rows)
  return (
    <>
      <TableScroll label={`${label}, table`} frame={frame}>
        <table class={isInCards ? 'cards' : ''} aria-label={label} {...ROLES.table}>
          <thead {...ROLES.rowgroup}>
            <tr {...ROLES.row}>
              {columns.map(({ head, isHeadHidden, ...column }) => (
                <th key={head} scope="col" {...ROLES.columnheader} class={classOf(column)}>
                  {isHeadHidden ? <span class="hidden">{head}</span> : head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody {...ROLES.rowgroup}>
            {rows.map((row, index) => (
              <tr
                key={keyOf(row)}
                {...ROLES.row}
                class={classes(isChosen?.(row) && 'chosen', isInCards && !isWhole && index >= FIRST_ROWS && 'later')}
              >
                {columns.map(({ head, cell, isHeadHidden, ...column }) =>
                  column.part === 'name' ? (
                    <th key={head} scope="row" {...ROLES.rowheader} class={classOf(column)}>
                      {cell(row)}
                    </th>
                  ) : (
                    <td key={head} {...ROLES.cell} class={classOf(column)} data-label={isHeadHidden ? '' : head}>
                      {cell(row)}
                    </td>
                  ),
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </TableScroll>
      {isInCards && rows.length > FIRST_ROWS && (
        <button type="button" class="button more-rows" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show fewer' : `Show all ${rows.length}`}
        </button>
      )}
    </>
  )
}

type Look = Pick<Column<never>, 'part' | 'isNumber' | 'wraps'>

const classOf = ({ part, isNumber, wraps }: Look): string => classes(part, isNumber && 'right num', wraps && 'wrap')

const classes = (...names: (string | false | undefined)[]): string => names.filter(Boolean).join(' ')
