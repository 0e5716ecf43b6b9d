import fc from 'fast-check'

const UINT256 = 2n ** 256n
/** Text that parsers, databases and the chain may stumble over. */
const oddText = fc.constantFrom(
  '',
  ' ',
  '0',
  '-1',
  '00',
  '1e3',
  '0x',
  '0x1',
  'NaN',
  'null',
  '../..',
  '%',
  '\u0000',
  '\u202e',
  '\ud800',
  `${UINT256}`,
  `${UINT256 - 1n}`,
  '9'.repeat(400),
  '1'.repeat(20),
  '0.0000001',
  '<script>',
  "'; DROP TABLE intent; --",
  '__proto__',
  'constructor',
  'NVDA',
  'genesis',
  `0x${'0'.repeat(40)}`,
  `0x${'f'.repeat(40)}`,
  `0x${'ab'.repeat(32)}`,
  `0x${'ff'.repeat(65)}`,
)
/** Values of any JSON type. */
export const oddValue = fc.oneof(
  { weight: 3, arbitrary: oddText },
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.constant([]),
  fc.constant({}),
  // Objects without a text, as JSON can have them.
  fc.constantFrom({ toString: 1 }, { valueOf: null, toString: null }, JSON.parse('{"__proto__":{"toString":1}}')),
  fc.jsonValue({ maxDepth: 2 }),
)
