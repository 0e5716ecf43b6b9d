// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title Everything that one response of the service needs, read in one call
/// @notice Never deployed: the service lends its code to an address for the length of an `eth_call` (a state override).
/// So a read can depend on another one (a position's token, an agent's vault) while all of them are of one block, on a
/// node without history too. Each contract's return data is passed on unchanged with its success flag: no read
/// reverts because a function is missing or reverts. The functions are not views only because the venue's quoter is not.
interface IServiceReader {
    /// @notice The protocol's addresses; the zero address for a contract that a deployment lacks
    struct Contracts {
        address agentRegistry;
        address vaultTrackRegistry;
        address tokenRegistry;
        address priceOracle;
        address tradeRouter;
        address tradeRouterLens;
        address positionManager;
        address allocationManager;
        address swapAdapter;
        address quoter;
        address usdc;
    }

    /// @notice The chain's own block, also where `block.number` is the parent chain's
    struct Block {
        uint256 number;
        uint256 timestamp;
        uint256 chainId;
    }

    /// @param data What the function returned; what it reverted with when it did not succeed
    struct Answer {
        bool success;
        bytes data;
    }

    /// @param record `getAgent`
    /// @param isOwnerCurrent `isERC8004OwnerCurrent`
    struct AgentAnswers {
        Answer record;
        Answer isOwnerCurrent;
    }

    /// @param record `getPosition`
    /// @param exitRules `getExitRules`
    /// @param unrealizedPnl `positionUnrealizedPnlUsdc`; absent for a closed position
    /// @param capitalMode `capitalModeOf` of the position manager; absent where a deployment lacks it, and then real
    /// @param exitState `exitStateOf` of the lens; absent for a closed position and where a deployment lacks it
    /// @param multiplier `multiplierOf` of the token registry, or else `uiMultiplier` of the token; absent for a closed position
    struct PositionAnswers {
        Answer record;
        Answer exitRules;
        Answer unrealizedPnl;
        Answer capitalMode;
        Answer exitState;
        Answer multiplier;
    }

    /// @notice The trade to read the terms of; fields that do not apply are zero
    /// @param token The token to buy; the position's when it is zero
    /// @param usdcAmount An amount to quote in addition to the probed ones
    /// @param exitBps The share of the position to quote a sale of; nothing is probed then
    /// @param orderId An order of the agent, or 0
    struct Subject {
        uint256 agentId;
        address token;
        uint256 positionId;
        uint256 usdcAmount;
        uint256 exitBps;
        bytes32 orderId;
    }

    /// @param day `block.timestamp / 1 days`, which the daily figures are of
    /// @param domain `eip712Domain` of the router
    /// @param quoted Whether the venue was queried for `fills` and `sale`
    /// @param capitalMode `capitalModeOf` of the allocation manager; absent where a deployment lacks it
    /// @param effectiveCap `effectiveCapUsdc` of the allocation manager; absent where a deployment lacks it, and then the cap holds
    /// @param policy `limitsOf` of the router's trade policy for the agent's vault and track; absent likewise
    /// @param trackRecord `trackRecordOf` of the allocation manager; absent likewise
    /// @param waste `wasteOf` of the allocation manager; absent likewise
    /// @param dueExit `dueExitOf` of the position; absent likewise
    /// @param venuePrices `pricesOf` of the swap adapter over the policy's window; absent likewise
    /// @param isTwapRequired `isTwapRequired` of the trade policy; absent likewise
    /// @param previousTurnover `dailyTurnoverUsdc` of the day before `day`
    /// @param previousRealizedPnl `dailyRealizedPnlUsdc` of the day before `day`
    /// @param mandate `mandateOf` of the agent registry's `OwnerControls`; absent where a deployment lacks it
    /// @param isTokenAllowed `isTokenAllowed` of the mandate for the token; absent likewise
    /// @param orderDomain `eip712Domain` of the agent registry's `OrderBook`; absent where a deployment lacks it
    /// @param openOrderCount `openOrderCount` of the agent; absent likewise
    /// @param maxOpenOrders `MAX_OPEN_ORDERS`; absent likewise
    /// @param orderState `orderStateOf` the order; absent likewise
    struct Terms {
        AgentAnswers agent;
        Answer nonce;
        Answer domain;
        Answer registryPaused;
        Answer allocation;
        Answer trackConfig;
        Answer trackActive;
        VaultAnswers vault;
        uint256 day;
        Answer dailyTurnover;
        Answer dailyRealizedPnl;
        PositionAnswers position;
        TokenAnswers token;
        bool quoted;
        Fill[] fills;
        Fill sale;
        Answer capitalMode;
        Answer effectiveCap;
        Answer policy;
        Answer trackRecord;
        Answer waste;
        Answer dueExit;
        Answer venuePrices;
        Answer isTwapRequired;
        Answer previousTurnover;
        Answer previousRealizedPnl;
        Answer mandate;
        Answer isTokenAllowed;
        Answer orderDomain;
        Answer openOrderCount;
        Answer maxOpenOrders;
        Answer orderState;
    }

    /// @notice What an agent's owner signs for and about; all but `agent` absent where a deployment lacks `OwnerControls`
    /// @param ownerControls The contract that owners sign for; the zero address where there is none
    /// @param domain `eip712Domain` of it
    /// @param ownerNonce `nonces` of the agent's owner
    /// @param mandate `mandateOf` the agent
    /// @param pendingOwner `pendingOwnerOf` the agent
    /// @param pendingOwnerNonce `nonces` of that account
    /// @param intentNonce `nonces` of the agent on the router
    /// @param openPositionIds `getOpenPositionIds`: what a close all has still to sell
    /// @param vaultTokens The tokens of the agent's vault
    /// @param allowed `isTokenAllowed` of each of them
    struct OwnerTerms {
        AgentAnswers agent;
        address ownerControls;
        Answer domain;
        Answer ownerNonce;
        Answer mandate;
        Answer pendingOwner;
        Answer pendingOwnerNonce;
        Answer intentNonce;
        Answer openPositionIds;
        address[] vaultTokens;
        Answer[] allowed;
    }

    struct VaultAnswers {
        Answer tradingPaused;
        Answer totalAssets;
        Answer idleAssets;
        Answer asset;
        Answer maxPriceAge;
        address[] allowedTokens;
    }

    /// @param maxAge `maxAgeOf` of the oracle, which not every deployment has
    /// @param description `descriptionOf` of the token registry; absent likewise
    /// @param multiplier `multiplierOf` of the token registry, or else `uiMultiplier` of the token
    /// @param newMultiplier `newUIMultiplier` of the token; absent for a token without one, like the next
    /// @param effectiveAt `effectiveAt` of the token
    /// @param restriction `restrictionOf` for more than there can be, so that it shows the vault's balance
    struct TokenAnswers {
        Answer isAllowed;
        Answer round;
        Answer maxAge;
        Answer openPositionId;
        Answer decimals;
        Answer description;
        Answer multiplier;
        Answer newMultiplier;
        Answer effectiveAt;
        Answer restriction;
        Answer ledger;
    }

    /// @param amountOut What the venue gives for `amountIn`; 0 when it cannot fill
    struct Fill {
        uint256 amountIn;
        uint256 amountOut;
    }

    /// @param capitalMode `capitalModeOf` of the allocation manager; absent where a deployment lacks it, like the rest
    /// @param effectiveCap `effectiveCapUsdc` of the allocation manager
    /// @param trackRecord `trackRecordOf` of the allocation manager
    /// @param waste `wasteOf` of the allocation manager
    /// @param firstLoss `firstLossOf` of the allocation manager
    /// @param policy `limitsOf` of the router's trade policy for the agent's vault and track
    /// @param promotion `criteriaOf` of the agent registry's promotion criteria
    /// @param examination `examinationOf` of them
    struct Risk {
        AgentAnswers agent;
        Answer allocation;
        Answer trackConfig;
        Equity equity;
        uint256 day;
        Answer dailyRealizedPnl;
        Answer tradeCount;
        Answer positionsOpened;
        Answer positionsClosed;
        Answer capitalMode;
        Answer effectiveCap;
        Answer trackRecord;
        Answer waste;
        Answer firstLoss;
        Answer policy;
        Answer promotion;
        Answer examination;
    }

    /// @notice An agent's equity; USDC base units
    /// @param isKnown Whether realized PnL and open positions could be read
    /// @param used The part of the cap that is in open positions
    /// @param peak The lens's, and never below `current`
    /// @param current The lens's; cap and PnL, at least zero, where it has none
    /// @param drawdownBps The lens's; from peak and current where it has none
    /// @param unrealized Of a token without a fresh price at the last known one; nothing where there was none
    /// @param openCount How many positions are open
    /// @param staleTokens Tokens of open positions that have no fresh price
    struct Equity {
        bool isKnown;
        uint256 cap;
        uint256 used;
        uint256 peak;
        uint256 current;
        uint256 drawdownBps;
        int256 realized;
        int256 unrealized;
        uint256 openCount;
        address[] staleTokens;
    }

    /// @notice A vault's value; base units
    /// @param isKnown Whether all of it could be read
    /// @param sharePrice The value of one whole share
    struct Worth {
        bool isKnown;
        uint256 totalAssets;
        uint256 idleAssets;
        uint256 totalShares;
        uint256 sharePrice;
    }

    /// @param amount What the vault's ledger holds of the token; its balance where the vault keeps no ledger
    /// @param round `latestRoundData`
    /// @param maxAge `maxAgeOf` of the oracle, which not every deployment has
    /// @param decimals `tokenDecimals`
    /// @param multiplier `multiplierOf` of the token registry, or else `uiMultiplier` of the token
    struct Holding {
        address token;
        uint256 amount;
        Answer round;
        Answer maxAge;
        Answer decimals;
        Answer multiplier;
    }

    /// @param holdings The tokens that the vault allows or ever allowed
    /// @param used The sum of `allocationUsed` over the first `counted` agents
    /// @param counted Fewer than all of them where the call's gas ends before
    struct VaultFigures {
        Worth worth;
        Answer maxPriceAge;
        Answer totalAgentCaps;
        Holding[] holdings;
        uint256 used;
        uint256 counted;
    }

    /// @notice Returns the state that the router checks an agent's next intent against
    function intentTerms(Contracts calldata contracts, Subject calldata subject)
        external
        returns (Block memory at, Terms memory terms);

    /// @notice The agent and its open positions, oldest first
    /// @return at The block of the read
    /// @return agent The agent's read results
    /// @return ids `getOpenPositionIds`
    /// @return positions The read results of each id
    function openPositions(Contracts calldata contracts, uint256 agentId)
        external
        returns (Block memory at, AgentAnswers memory agent, Answer memory ids, PositionAnswers[] memory positions);

    /// @notice The agent and, newest first, at most `limit` of its closed positions among the newest 500 of all agents
    /// @return at The block of the read
    /// @return agent The agent's read results
    /// @return count `positionCount`
    /// @return positions The read results of each closed position
    function closedPositions(Contracts calldata contracts, uint256 agentId, uint256 limit)
        external
        returns (Block memory at, AgentAnswers memory agent, Answer memory count, PositionAnswers[] memory positions);

    /// @notice The agent's risk figures
    function riskFigures(Contracts calldata contracts, uint256 agentId)
        external
        returns (Block memory at, Risk memory risk);

    /// @notice The equity of agents and the worth of vaults
    /// @return at The block of the read
    /// @return found Of the agents in their order; of fewer where the call's gas ends before
    /// @return worths Of the vaults in their order
    function equities(Contracts calldata contracts, uint256[] calldata agentIds, address[] calldata vaults)
        external
        returns (Block memory at, Equity[] memory found, Worth[] memory worths);

    /// @notice Returns a vault's value, its holdings, and how much of it is allocated
    /// @param agentIds The agents whose use of their allocations is added up
    function vaultFigures(Contracts calldata contracts, address vault, uint256[] calldata agentIds)
        external
        returns (Block memory at, VaultFigures memory figures);

    /// @notice The agent that is linked to an ERC-8004 identity
    /// @return at The block of the read
    /// @return agentId 0 when there is none
    /// @return agent Its read results
    function agentByERC8004(Contracts calldata contracts, uint256 erc8004AgentId)
        external
        returns (Block memory at, uint256 agentId, AgentAnswers memory agent);

    /// @notice What the link of an identity to the agent must match
    /// @return at The block of the read
    /// @return agent The agent's read results
    /// @return domain `eip712Domain` of the agent registry
    /// @return ownerNonce The owner's nonce on the agent registry
    /// @return identityRegistry `erc8004IdentityRegistry` of the agent registry
    function linkTerms(Contracts calldata contracts, uint256 agentId)
        external
        returns (
            Block memory at,
            AgentAnswers memory agent,
            Answer memory domain,
            Answer memory ownerNonce,
            Answer memory identityRegistry
        );

    /// @notice Reads an agent's mandate and what its owner needs to sign a message
    function ownerTerms(Contracts calldata contracts, uint256 agentId)
        external
        returns (Block memory at, OwnerTerms memory terms);
}
