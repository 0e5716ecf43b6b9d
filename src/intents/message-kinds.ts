import type { IntakeKind } from '@agent-trading-service/protocol/intake-kind'
import type {
  Message,
  OrderPrimaryType,
  PrimaryType,
  WebhookPrimaryType,
} from '@agent-trading-service/protocol/typed-data'
import type { IntentKind } from '../executor/relay-types.ts'

/** What the pipeline does differently for a kind of signed message. */
type MessageKind = {
  /** The kind in the journal. */
  kind: IntentKind
  /** The lane that relays it. */
  lane: 'executor' | 'relayer'
  /** The switch with which the operator refuses new messages. */
  intake: IntakeKind
  /** Where an accepted body is looked up: a former owner's is in another lane than the present owner's. */
  acceptedIn: 'lane' | 'allLanes'
  /** From when on a repeated body has the status of a replay. */
  replayOnce: 'accepted' | 'executed'
  /** Whether the contract accepts the message once at any nonce, so that nothing that happens to the nonce voids it. */
  worksAtAnyNonce: boolean
  /**
   * Whether its gas may come from an exit reserve: it reduces risk, or takes the agent from a thief of the signer's
   * key.
   */
  protects: boolean
  /** Whether a signature raises the limits of the client's address. Not if anyone can make up the signer. */
  raisesLimits: boolean
  /** Whether a message sells a whole position. */
  closesPosition?: (message: Message) => boolean
}

/**
 * The messages that lanes relay: an owner's consent is part of a registration, and the Worker itself handles webhooks.
 */
type RelayedPrimaryType = Exclude<PrimaryType, 'OwnAgent' | WebhookPrimaryType>

/** The messages of an agent's signer to the router. */
export type TradePrimaryType = 'OpenPosition' | 'AddToPosition' | 'ReducePosition' | 'UpdateExitLadder'

/** All messages of an agent's signer: they share its nonces. */
export type SignerPrimaryType = TradePrimaryType | OrderPrimaryType

/** What a message is: its primary type, but an order that sells is another kind than one that buys. */
export type MessageKindName = RelayedPrimaryType | 'PlaceReduction'

/** Returns what is signed for a kind of message. */
export const primaryTypeOf = (kind: MessageKindName): RelayedPrimaryType =>
  kind === 'PlaceReduction' ? 'PlaceOrder' : kind

/** A reduction by all of a position. */
const CLOSE_BPS = 10_000

const intent = {
  lane: 'executor',
  acceptedIn: 'lane',
  replayOnce: 'executed',
  worksAtAnyNonce: false,
  protects: false,
  raisesLimits: true,
} as const
const owner = { ...intent, kind: 'owner', intake: 'ownerMessages', acceptedIn: 'allLanes' } as const
const stop = { ...owner, intake: 'ownerStops', worksAtAnyNonce: true, protects: true } as const
const registry = { ...intent, lane: 'relayer', intake: 'registrations', replayOnce: 'accepted' } as const

export const messageKinds: Record<MessageKindName, MessageKind> = {
  OpenPosition: { ...intent, kind: 'open', intake: 'buys' },
  AddToPosition: { ...intent, kind: 'add', intake: 'buys' },
  ReducePosition: {
    ...intent,
    kind: 'reduce',
    intake: 'reductions',
    protects: true,
    closesPosition: ({ exitBps }) => exitBps === CLOSE_BPS,
  },
  UpdateExitLadder: { ...intent, kind: 'ladder', intake: 'exitLadders' },
  PlaceOrder: { ...intent, kind: 'order', intake: 'buys' },
  PlaceReduction: { ...intent, kind: 'order', intake: 'exitLadders' },
  CancelOrder: { ...intent, kind: 'cancelOrder', intake: 'exitLadders' },
  OfferOwnership: owner,
  AcceptOwnership: owner,
  SetSigner: { ...owner, protects: true },
  SetMandate: owner,
  CancelIntents: { ...owner, protects: true },
  LockFirstLoss: owner,
  StopBuying: stop,
  CloseAll: stop,
  SelfRegister: { ...registry, kind: 'register', raisesLimits: false },
  LinkERC8004: { ...registry, kind: 'link' },
}
