import type { operations } from '../operations/index.ts'

export type ToolName = NonNullable<(typeof operations)[number]['tool']>

const signing =
  'Sign typedData of the quote outside of this server with the signer key (eth_signTypedData_v4), then send the body of the quote with agentId and signature.'
const repeat = 'Sending the identical signed body again is safe: it is executed once.'

/** What a model needs to know of each tool beside its description: what comes before and after, units, one example. */
const guides = {
  svc_list_vaults:
    'Start here: the id goes into svc_list_vault_tokens, the contractAddress into a registration. Example: {}',
  svc_get_vault: 'Example: {"id":"genesis"}',
  svc_list_vault_tokens: 'The symbols are what svc_get_trade_intent_quote takes. Example: {"id":"genesis"}',
  svc_list_tokens: 'To trade, a token must be allowed in the vault of the agent. Example: {}',
  svc_get_prices:
    'Prices are decimal US dollars; while stale is true nothing can be opened. Example: {"symbols":"NVDA,AAPL"}',
  svc_get_agent_registration_quote:
    'First step of a registration: ask with signer, vault (an address from svc_list_vaults), name and metadataURI. Then sign typedData outside of this server and call svc_register_agent. Example: {"signer":"0x…","vault":"0x…","name":"momentum-7","metadataURI":"https://agents.example/7.json"}',
  svc_register_agent:
    'Before: svc_get_agent_registration_quote. Send the body of the quote with signature. After: keep agentId, it names the agent in every other tool. The fee is in the quote.',
  svc_get_agent: 'A status other than 1 (Active) cannot take new risk. Example: {"agentId":"1"}',
  svc_list_agents_by_owner: 'Finds the agentId that other tools take. Example: {"owner":"0x…"}',
  svc_get_agent_by_erc8004: 'Finds the agentId that other tools take. Example: {"id":"7"}',
  svc_link_agent_erc8004:
    'The owner of the agent must hold the identity and sign the link. After: svc_get_agent shows it.',
  svc_get_trade_intent_quote: `First step of opening a position: ask with symbol, usdcAmount and exits. Every check must pass; maxUsdcAmount and exitBounds say what would. ${signing} Submit with svc_submit_trade_intent. Example: {"agentId":"1","symbol":"NVDA","usdcAmount":"250","exits":"-800:10000,1500:10000"}`,
  svc_submit_trade_intent: `Before: svc_get_trade_intent_quote. ${repeat} After: svc_get_agent_position with the positionId.`,
  svc_get_add_intent_quote:
    'Ask with usdcAmount, sign typedData as for an open, then svc_submit_add_intent. Example: {"agentId":"1","positionId":"3","usdcAmount":"100"}',
  svc_submit_add_intent: `Before: svc_get_add_intent_quote. ${repeat}`,
  svc_get_reduce_intent_quote:
    'Ask with exitBps, sign typedData as for an open, then svc_submit_reduce_intent. Example: {"agentId":"1","positionId":"3","exitBps":10000}',
  svc_submit_reduce_intent: `Before: svc_get_reduce_intent_quote. ${repeat} After: svc_get_agent_position shows the realized PnL.`,
  svc_get_exit_ladder_intent_quote:
    'Ask with exits, sign typedData as for an open, then svc_submit_exit_ladder_intent. Example: {"agentId":"1","positionId":"3","exits":"-500:10000,2000:10000"}',
  svc_submit_exit_ladder_intent: `Before: svc_get_exit_ladder_intent_quote. ${repeat}`,
  svc_get_agent_positions: 'The positionId is what add, reduce and ladder quotes take. Example: {"agentId":"1"}',
  svc_list_closed_positions: 'Example: {"agentId":"1","limit":10}',
  svc_get_agent_position: 'Example: {"agentId":"1","positionId":"3"}',
  svc_get_risk_state: 'Look here before a trade and after a refusal. Example: {"agentId":"1"}',
  svc_get_trade_history: 'Example: {"agentId":"1"}',
  svc_get_transaction: 'After a submission whose outcome was unknown. Example: {"txHash":"0x…"}',
  svc_refresh_prices: 'Use it when svc_get_prices says stale, then ask again. Example: {}',
}

/** The guide of every tool that the operations name; a missing one does not compile. */
export const guideOf: Record<ToolName, string> = guides
