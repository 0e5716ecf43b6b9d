import { formatUnits } from 'viem'
import { z } from 'zod'
import { type Depth, readDepth } from '../chain/read-depth.ts'
import { symbolsOf, tokenBySymbol } from '../chain/token-symbols.ts'
import { present } from '../resources/present.ts'
import { ORACLE_DECIMALS, presentPrice, price } from '../resources/price.ts'
import { amount, asOf, bps, parseUsdc, presentAsOf, usdc, usdcAmount } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

const fill = z
  .object({
    tokenAmount: amount("The token's base units"),
    usdcAmount: usdc('Paid or received'),
    costBps: bps("Below the oracle's value, fee included; negative above it"),
  })
  .meta({ id: 'DepthFill' })

export const getDepth = defineOperation(
  {
    id: 'getDepth',
    tool: {
      name: 'svc_get_depth',
      set: 'venue',
      description:
        'Returns what buying and selling a size costs now in the pool, against the oracle. Example: {"symbol":"NVDA","usdcAmount":"1000"}',
    },
    path: '/tokens/{symbol}/depth',
    tag: 'Prices',
    summary: 'Get the cost of a size',
    description:
      "Returns the pool's price and what a purchase for `usdcAmount`, and a sale of as many tokens as that is worth at the oracle's price, bring now: quotes of the venue for the newest block, with its fee. The router has limits of its own; the quote of an intent shows them.",
    params: z.object({ symbol: z.string().min(1).max(64).meta({ example: 'NVDA' }) }),
    query: z.object({ usdcAmount: usdcAmount.meta({ description: 'Human USDC', example: '1000' }) }),
    cache: 'etag',
    output: z
      .object({
        symbol: z.string(),
        usdcAmount: usdc('The size'),
        oracle: price,
        midPriceUsd: z.string().describe("The pool's price before a trade, without its fee; US dollars"),
        midDeviationBps: z.int().describe("From the oracle's price to the pool's; basis points"),
        poolFeeBps: z.number().describe('Basis points, part of every cost'),
        purchase: fill,
        sale: fill,
        asOf,
      })
      .meta({ id: 'Depth' }),
    errors: [502, 503],
  },
  async ({ chain }, { symbol: given, usdcAmount }) => {
    const amount = parseUsdc(usdcAmount)
    const address = await tokenBySymbol(chain, given)
    const symbol = (await symbolsOf(chain, [address]))(address)
    const { block, depth } = await readDepth(chain, { address, symbol }, amount)
    return { symbol, usdcAmount: `${amount}`, ...presentDepth(depth), asOf: presentAsOf(block) }
  },
)

const BPS = 10_000n
const FEE_UNITS_PER_BPS = 100

const presentDepth = ({ quote, midPrice, poolFee, purchase, sale }: Depth) => ({
  oracle: presentPrice(quote),
  midPriceUsd: formatUnits(midPrice, ORACLE_DECIMALS),
  midDeviationBps: Number(((midPrice - quote.price) * BPS) / quote.price),
  poolFeeBps: poolFee / FEE_UNITS_PER_BPS,
  purchase: present(fill, purchase),
  sale: present(fill, sale),
})
