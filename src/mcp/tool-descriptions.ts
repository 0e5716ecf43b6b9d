import type { operations } from '../operations/index.ts'

export type ToolName = NonNullable<(typeof operations)[number]['tool']>

const sign = 'sign its typedData in a wallet (EIP-712)'
const repeat = 'The identical body again is safe: it is executed once.'

/** What a model is told of each tool: what it does, what comes before and after, units, one example. */
const guides = {
  svc_list_vaults:
    'Lists the vaults with the risk policy of their tracks. Start here: svc_list_vault_tokens takes the id, a registration the contractAddress.',
  svc_get_vault:
    'One vault, by slug or contract address, with the risk policy of its tracks. Example: {"id":"genesis"}',
  svc_list_vault_tokens:
    'The tokens that may be traded in a vault, with prices in US dollars. svc_get_trade_intent_quote takes the symbol. Example: {"id":"genesis"}',
  svc_get_vault_stats:
    'What a vault has, where it is, its share price now and over time, and its agents. Example: {"id":"genesis","interval":"1d"}',
  svc_list_tokens:
    'Every token with its price in US dollars and the vaults that allow it. An agent trades only what its vault allows.',
  svc_get_prices:
    'Oracle prices in US dollars, of all tokens or of some. While stale is true nothing can be opened or added. Example: {"symbols":"NVDA,AAPL"}',
  svc_refresh_prices:
    'Posts newer market prices to the oracle: for when svc_get_prices says stale. skipped says which were not posted and why. Some deployments want a bearer token. Example: {"symbols":["NVDA"]}',
  svc_get_agent_registration_quote: `First step of a registration: answers fee, nonce, typedData and the body to send. Ask with signer, vault (an address of svc_list_vaults), name and metadataURI, then ${sign} and call svc_register_agent. Example: {"signer":"0x…","vault":"0x…","name":"momentum-7","metadataURI":"https://agents.example/7.json"}`,
  svc_register_agent:
    'Registers an agent. Before: svc_get_agent_registration_quote; send its body with signature. Where x402 is enabled it first answers PAYMENT_REQUIRED: call again with the same input and the payment in _meta["x402/payment"]. After: every other tool takes the agentId. The identical body again is safe and never charged twice.',
  svc_get_agent:
    'The record of an agent: owner, signer, vault, track and status; only status 1 (Active) may take new risk. Example: {"agentId":"1"}',
  svc_list_agents:
    'Lists agents, newest first, by vault, track or status. Example: {"vault":"genesis","status":"Active"}',
  svc_list_agents_by_owner:
    'The agents that an address owns now, with the agentId that other tools take. Example: {"owner":"0x…"}',
  svc_get_agent_by_erc8004:
    'The agent that an ERC-8004 identity token is linked to; erc8004OwnerCurrent says whether its owner still holds the token. Example: {"erc8004AgentId":"7"}',
  svc_link_agent_erc8004: `Links an agent to an ERC-8004 identity that its owner holds. Before: the owner signs LinkERC8004 (type and domain in svc://signing; the nonce is signerNonce of svc_get_agent_registration_quote for the owner). ${repeat} After: svc_get_agent shows it.`,
  svc_get_trade_intent_quote: `First step of opening a position: the rules with what passes now, an estimate, typedData and the body to send. Ask with symbol, usdcAmount (human USDC) and exits. Every check must pass; maxUsdcAmount (base units) and exitBounds say what would. Then ${sign} and call svc_submit_trade_intent. Example: {"agentId":"1","symbol":"NVDA","usdcAmount":"250","exits":"-800:10000,1500:10000"}`,
  svc_submit_trade_intent: `Opens a position. Before: svc_get_trade_intent_quote; send its body with agentId and signature. ${repeat} After: svc_get_agent_position with the positionId.`,
  svc_get_add_intent_quote: `First step of adding to a position; its ladder stays. Ask with usdcAmount (human USDC), ${sign}, then svc_submit_add_intent. Example: {"agentId":"1","positionId":"3","usdcAmount":"100"}`,
  svc_submit_add_intent: `Adds to a position; the entry price is averaged. Before: svc_get_add_intent_quote; send its body with agentId and signature. ${repeat}`,
  svc_get_reduce_intent_quote: `First step of selling a part of a position, or all of it (exitBps 10000). Ask with exitBps, ${sign}, then svc_submit_reduce_intent. Example: {"agentId":"1","positionId":"3","exitBps":10000}`,
  svc_submit_reduce_intent: `Sells exitBps of what remains of a position; 10000 closes it. Before: svc_get_reduce_intent_quote; send its body with agentId and signature. ${repeat} After: svc_get_agent_position shows the realized PnL.`,
  svc_get_exit_ladder_intent_quote: `First step of replacing the pending exit rules of a position. Ask with exits within exitBounds, ${sign}, then svc_submit_exit_ladder_intent. Example: {"agentId":"1","positionId":"3","exits":"-500:10000,2000:10000"}`,
  svc_submit_exit_ladder_intent: `Replaces the pending exit rules of a position; fired ones stay. Before: svc_get_exit_ladder_intent_quote; send its body with agentId and signature. ${repeat}`,
  svc_get_agent_positions:
    'The open positions of an agent with ladders and PnL; add, reduce and ladder quotes take the positionId. Example: {"agentId":"1"}',
  svc_list_closed_positions: 'The closed positions of an agent, newest first. Example: {"agentId":"1","limit":10}',
  svc_get_agent_position:
    'One position, open or closed, with its ladder and its realized and unrealized PnL. Example: {"agentId":"1","positionId":"3"}',
  svc_get_position_automation:
    'What fires each exit rule of a position and how far that is, and what the keeper saw last. Look here when an exit was expected and did not happen. Example: {"agentId":"1","positionId":"3"}',
  svc_get_risk_state:
    'Allocation, equity, drawdown, PnL and limits of an agent, and what its promotion needs. Look here before a trade and after a refusal. Example: {"agentId":"1"}',
  svc_get_equity_history: 'Equity, PnL and drawdown of an agent over time. Example: {"agentId":"1","interval":"1d"}',
  svc_get_trade_history:
    'What an agent has traded, newest first, with PnL and the exits that fired; filters by type, symbol, positionId. Example: {"agentId":"1","type":"ExitExecuted"}',
  svc_get_intent:
    'What became of a signed intent, by the digest that the quote answered: executed, on its way, or refused and why. Look here when a submission got no clear answer. Example: {"digest":"0x…"}',
  svc_get_transaction:
    'Whether a transaction is pending, succeeded or reverted, and why; follow replacedBy. Example: {"txHash":"0x…"}',
}

/** The guide of every tool that the operations name; a missing one does not compile. */
export const guideOf: Record<ToolName, string> = guides
