import {
  codePointName,
  escapeUnseenInJson,
  firstUnseen,
  hasVisible,
  partsOfText,
  showUnseen,
} from '@agent-trading-service/protocol/unseen-text'
import { describe, expect, it } from 'vitest'
import { clean, printableJson } from '../../packages/cli/src/output/clean.ts'
import { responseForTools } from '../../src/mcp/replace-endpoints-with-tools.ts'
import { registrationFields } from '../../src/resources/registration.ts'
import { toVisibleParts } from '../../web/src/format/visible-text.ts'

const everyCodePoint = Array.from({ length: 0x110000 }, (_, codePoint) => String.fromCodePoint(codePoint))
/** The code points of a Unicode property. */
const having = (property: string) => {
  const pattern = new RegExp(`^\\p{${property}}$`, 'u')
  return everyCodePoint.filter(character => pattern.test(character))
}

const UNSEEN_PROPERTIES = [
  'Default_Ignorable_Code_Point',
  'Cc',
  'Cf',
  'Cn',
  'Cs',
  'Co',
  'Zl',
  'Zp',
  'Bidi_Control',
  'Variation_Selector',
  'Noncharacter_Code_Point',
  'Join_Control',
]
/** Those that a reader of the properties might forget. */
const NAMED = [
  '\u00ad',
  '\u034f',
  '\u115f',
  '\u1160',
  '\u17b4',
  '\u180e',
  '\u2800',
  '\u3164',
  '\uffa0',
  '\ufeff',
  '\u{e0001}',
]

describe('an unseen character', () => {
  it.each(UNSEEN_PROPERTIES)('an unseen character is each one with the property %s', property => {
    const characters = having(property)
    expect(characters.length).toBeGreaterThan(0)
    expect(characters.filter(character => firstUnseen(`a${character}b`) !== character)).toEqual([])
  })

  it('an unseen character is each filler and selector that has another property', () => {
    for (const character of NAMED) expect(firstUnseen(`a${character}b`)).toBe(character)
  })

  it('an unseen character reaches no name, model, terminal or page, whichever it is', () => {
    const unseen = UNSEEN_PROPERTIES.filter(property => property !== 'Co')
      .flatMap(having)
      .concat(NAMED)
    const text = unseen.map(character => `a${character}`).join('')
    for (const shown of [showUnseen(text), clean(text), printableJson(text), responseForTools({ name: text })]) {
      const flat = typeof shown === 'string' ? shown : (shown as { name: string }).name
      expect(partsOfText(flat)).toHaveLength(1)
    }
    expect(JSON.parse(printableJson(text))).toBe(text)
    expect(JSON.parse(escapeUnseenInJson(JSON.stringify(text)))).toBe(text)
    expect(toVisibleParts(text).filter(({ kind }) => kind === 'invisible')).toHaveLength(unseen.length)
    for (const character of UNSEEN_PROPERTIES.flatMap(property => having(property).slice(0, 1)).concat(NAMED))
      expect(registrationFields.name.safeParse(`a${character}b`).success, codePointName(character)).toBe(false)
  })

  it('an unseen character is none of the letters, digits, signs and spaces that fonts show', () => {
    const invisibleLetters = new Set(NAMED.concat(having('Default_Ignorable_Code_Point')))
    for (const property of ['L', 'N', 'P', 'S', 'M', 'Zs'])
      expect(
        having(property).filter(
          character => firstUnseen(`${character}`) !== undefined && !invisibleLetters.has(character),
        ),
      ).toEqual([])
  })
})

describe('an emoji', () => {
  it.each(['👩‍👩‍👧‍👦', '🏴‍☠️', '❤️', '☎︎', '1️⃣', '🕵🏻‍♂️', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '🇺🇳', '👍🏽'])(
    'an emoji keeps its joiners and selectors: %s',
    emoji => {
      expect(firstUnseen(`a${emoji}b`)).toBeUndefined()
      expect(showUnseen(emoji)).toBe(emoji)
      expect(registrationFields.name.safeParse(emoji).success).toBe(true)
    },
  )

  it.each([
    ['a\u200db', '\u200d'],
    ['👩\u200d', '\u200d'],
    ['👩\u200d\u200d👩', '\u200d'],
    ['❤\ufe0f\ufe0f', '\ufe0f'],
    ['a\ufe0f', '\ufe0f'],
    ['1\ufe0f', '\ufe0f'],
    ['👍\u{e0061}', '\u{e0061}'],
    ['🏴\u{e0067}\u{e0062}\u{e0078}\u{e007f}', '\u{e0067}'],
  ])('an emoji hides nothing: %j', (text, unseen) => {
    expect(firstUnseen(text)).toBe(unseen)
  })
})

describe('a name', () => {
  it.each(['momentum-7', 'Ωmega', '日本', '🚀', '7', '…', 'a b'])('a name may be %j', name => {
    expect(hasVisible(name)).toBe(true)
    expect(registrationFields.name.safeParse(name).success).toBe(true)
  })

  it.each([' ', '\u00a0\u3000', '\u0301', '\u3164', '\u2800', '\u115f\u1160', '  \u034f '])(
    'a name has something to see, unlike %j',
    name => {
      expect(hasVisible(name)).toBe(false)
      expect(registrationFields.name.safeParse(name).success).toBe(false)
    },
  )
})
