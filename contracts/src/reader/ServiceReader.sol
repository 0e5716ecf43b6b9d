// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {IERC4626} from "@openzeppelin/contracts/interfaces/IERC4626.sol";
import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IAgentRegistry} from "../interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "../interfaces/IAllocationManager.sol";
import {IMandateVault} from "../interfaces/IMandateVault.sol";
import {IOrderBook} from "../interfaces/IOrderBook.sol";
import {IOwnerControls} from "../interfaces/IOwnerControls.sol";
import {IPositionManager} from "../interfaces/IPositionManager.sol";
import {IPriceOracle} from "../interfaces/IPriceOracle.sol";
import {IPromotionCriteria} from "../interfaces/IPromotionCriteria.sol";
import {IServiceReader} from "../interfaces/IServiceReader.sol";
import {ISwapAdapter} from "../interfaces/ISwapAdapter.sol";
import {ITokenRegistry} from "../interfaces/ITokenRegistry.sol";
import {ITradePolicy} from "../interfaces/ITradePolicy.sol";
import {ITradeRouter} from "../interfaces/ITradeRouter.sol";
import {ITradeRouterLens} from "../interfaces/ITradeRouterLens.sol";
import {IUniswapV3QuoterV2} from "../interfaces/IUniswapV3QuoterV2.sol";
import {IUniswapV3SwapAdapter} from "../interfaces/IUniswapV3SwapAdapter.sol";
import {IVaultTrackRegistry} from "../interfaces/IVaultTrackRegistry.sol";
import {PoolPrice} from "../libraries/PoolPrice.sol";
import {PriceMath} from "../libraries/PriceMath.sol";

/// @title The reads of the service, each in one call
/// @dev `IServiceReader` documents the functions. Return data is read word by word where a further read depends on
/// it, since decoding malformed data would revert. A function that a deployment lacks counts as failed.
contract ServiceReader is IServiceReader {
    /// @dev Arbitrum's precompile; has no code elsewhere.
    address private constant ARB_SYS = address(0x64);
    bytes4 private constant ARB_BLOCK_NUMBER = bytes4(keccak256("arbBlockNumber()"));

    // A stock token's multiplier (ERC-8056).
    bytes4 private constant UI_MULTIPLIER = bytes4(keccak256("uiMultiplier()"));
    bytes4 private constant NEW_UI_MULTIPLIER = bytes4(keccak256("newUIMultiplier()"));
    bytes4 private constant EFFECTIVE_AT = bytes4(keccak256("effectiveAt()"));

    // Word indexes in return data; a struct with strings starts after its offset.
    uint256 private constant AGENT_OWNER = 1;
    uint256 private constant AGENT_VAULT = 4;
    uint256 private constant AGENT_TRACK = 5;
    uint256 private constant POSITION_AGENT = 1;
    uint256 private constant POSITION_TOKEN = 3;
    uint256 private constant POSITION_AMOUNT = 4;
    uint256 private constant POSITION_COST = 6;
    uint256 private constant POSITION_STATUS = 8;
    uint256 private constant ROUND_ANSWER = 1;
    uint256 private constant ALLOCATION_CAP = 3;
    uint256 private constant ALLOCATION_USED = 4;
    uint256 private constant RECORD_REALIZED = 2;
    uint256 private constant LIMITS_TWAP_DEVIATION = 6;
    uint256 private constant LIMITS_TWAP_WINDOW = 7;

    uint256 private constant BPS = 10_000;
    uint256 private constant SCAN_WINDOW = 500;
    uint256 private constant MAX_ALLOWED_TOKENS = 255;
    uint256 private constant MOST_DECIMALS = 18;

    /// @dev The venue is probed for its depth at sixteenths of the allocation's room, and then at halves of the
    /// smallest as long as they are above one USDC.
    uint256 private constant PROBES = 16;
    uint256 private constant LEAST_PROBE = 1e6;
    uint256 private constant MOST_ROOM = type(uint128).max;

    /// @dev More than the executor spends on a trade: a pool that is all but empty is walked through for many times
    /// that. A probe that the call's gas no longer allows counts as not filled.
    uint256 private constant QUOTE_GAS = 1_500_000;
    uint256 private constant RESERVED_GAS = 5_000_000;

    /// @dev An issuer may upgrade its token to code that takes all gas or, with it, returns megabytes.
    uint256 private constant TOKEN_GAS = 50_000;

    /// @inheritdoc IServiceReader
    function intentTerms(Contracts calldata contracts, Subject calldata subject)
        external
        returns (Block memory at, Terms memory terms)
    {
        at = _block();
        uint256 agentId = subject.agentId;
        terms.agent = _agent(contracts, agentId);
        terms.nonce = _ask(contracts.tradeRouter, abi.encodeCall(ITradeRouter.nonces, (agentId)));
        terms.domain = _ask(contracts.tradeRouter, abi.encodeCall(IERC5267.eip712Domain, ()));
        terms.registryPaused = _ask(contracts.agentRegistry, abi.encodeCall(IAgentRegistry.paused, ()));
        terms.allocation =
            _ask(contracts.allocationManager, abi.encodeCall(IAllocationManager.getAllocation, (agentId)));

        address vault = _address(terms.agent.record, AGENT_VAULT);
        terms.trackConfig = _trackConfig(contracts, terms.agent);
        terms.trackActive = _ask(
            contracts.vaultTrackRegistry,
            abi.encodeCall(IVaultTrackRegistry.isVaultTrackActive, (vault, _word(terms.agent.record, AGENT_TRACK)))
        );
        terms.vault = _vault(vault);
        terms.day = block.timestamp / 1 days;
        terms.dailyTurnover =
            _ask(contracts.tradeRouter, abi.encodeCall(ITradeRouter.dailyTurnoverUsdc, (agentId, terms.day)));
        terms.dailyRealizedPnl = _dailyRealizedPnl(contracts, agentId);
        _fillExtension(contracts, agentId, terms);
        _fillOrders(contracts, subject, terms);

        if (subject.positionId != 0) {
            terms.position = _position(contracts, subject.positionId);
            terms.dueExit =
                _ask(contracts.positionManager, abi.encodeCall(IPositionManager.dueExitOf, (subject.positionId)));
        }
        address token = subject.token == address(0) ? _address(terms.position.record, POSITION_TOKEN) : subject.token;
        if (token == address(0)) return (at, terms);
        terms.isTokenAllowed =
            _ask(_ownerControls(contracts), abi.encodeCall(IOwnerControls.isTokenAllowed, (agentId, token)));
        terms.token = _token(contracts, vault, agentId, token);
        _fillVenuePrices(contracts, token, terms);
        _quote(contracts, subject, token, terms);
    }

    /// @inheritdoc IServiceReader
    function openPositions(Contracts calldata contracts, uint256 agentId)
        external
        returns (Block memory at, AgentAnswers memory agent, Answer memory ids, PositionAnswers[] memory positions)
    {
        at = _block();
        agent = _agent(contracts, agentId);
        (ids, positions) = _openPositions(contracts, agentId);
    }

    /// @inheritdoc IServiceReader
    function closedPositions(Contracts calldata contracts, uint256 agentId, uint256 limit)
        external
        returns (Block memory at, AgentAnswers memory agent, Answer memory count, PositionAnswers[] memory positions)
    {
        at = _block();
        agent = _agent(contracts, agentId);
        count = _ask(contracts.positionManager, abi.encodeCall(IPositionManager.positionCount, ()));
        uint256 newest = _word(count, 0);
        uint256 oldest = newest > SCAN_WINDOW ? newest - SCAN_WINDOW : 0;
        positions = new PositionAnswers[](limit < SCAN_WINDOW ? limit : SCAN_WINDOW);
        uint256 found;
        for (uint256 id = newest; id > oldest && found < positions.length; --id) {
            Answer memory record = _record(contracts, id);
            if (_word(record, POSITION_AGENT) != agentId || _isOpen(record)) continue;
            positions[found++] = _position(contracts, id);
        }
        _truncate(positions, found);
    }

    /// @inheritdoc IServiceReader
    function riskFigures(Contracts calldata contracts, uint256 agentId)
        external
        returns (Block memory at, Risk memory risk)
    {
        at = _block();
        risk.agent = _agent(contracts, agentId);
        risk.allocation = _ask(contracts.allocationManager, abi.encodeCall(IAllocationManager.getAllocation, (agentId)));
        risk.trackConfig = _trackConfig(contracts, risk.agent);
        risk.equity = _equity(contracts, agentId);
        risk.day = block.timestamp / 1 days;
        risk.dailyRealizedPnl = _dailyRealizedPnl(contracts, agentId);

        address lens = contracts.tradeRouterLens;
        risk.tradeCount = _ask(lens, abi.encodeCall(ITradeRouterLens.tradeCount, (agentId)));
        risk.positionsOpened = _ask(lens, abi.encodeCall(ITradeRouterLens.positionsOpened, (agentId)));
        risk.positionsClosed = _ask(lens, abi.encodeCall(ITradeRouterLens.positionsClosed, (agentId)));
        risk.capitalMode =
            _ask(contracts.allocationManager, abi.encodeCall(IAllocationManager.capitalModeOf, (agentId)));
        (risk.effectiveCap, risk.trackRecord) = _ledger(contracts.allocationManager, agentId);
        risk.waste = _ask(contracts.allocationManager, abi.encodeCall(IAllocationManager.wasteOf, (agentId)));
        risk.firstLoss = _ask(contracts.allocationManager, abi.encodeCall(IAllocationManager.firstLossOf, (agentId)));
        risk.policy = _policy(contracts, risk.agent);
        Answer memory criteria = _ask(contracts.agentRegistry, abi.encodeCall(IAgentRegistry.promotionCriteria, ()));
        risk.promotion = _ask(_address(criteria, 0), abi.encodeCall(IPromotionCriteria.criteriaOf, (agentId)));
        risk.examination = _ask(_address(criteria, 0), abi.encodeCall(IPromotionCriteria.examinationOf, (agentId)));
    }

    /// @inheritdoc IServiceReader
    function equities(Contracts calldata contracts, uint256[] calldata agentIds, address[] calldata vaults)
        external
        returns (Block memory at, Equity[] memory found, Worth[] memory worths)
    {
        at = _block();
        worths = new Worth[](vaults.length);
        for (uint256 i; i < vaults.length; ++i) {
            worths[i] = _worth(vaults[i]);
        }
        found = new Equity[](agentIds.length);
        uint256 count;
        uint256 dearest;
        while (count < agentIds.length) {
            uint256 gas = gasleft();
            // What an agent costs grows with its positions: the next may have some more than any before.
            if (count != 0 && gas < 2 * dearest + RESERVED_GAS) break;
            found[count] = _equity(contracts, agentIds[count]);
            ++count;
            uint256 spent = gas - gasleft();
            if (spent > dearest) dearest = spent;
        }
        assembly ("memory-safe") {
            mstore(found, count)
        }
    }

    /// @inheritdoc IServiceReader
    function vaultFigures(Contracts calldata contracts, address vault, uint256[] calldata agentIds)
        external
        returns (Block memory at, VaultFigures memory figures)
    {
        at = _block();
        figures.worth = _worth(vault);
        figures.maxPriceAge = _ask(vault, abi.encodeCall(IMandateVault.maxPriceAge, ()));
        figures.totalAgentCaps =
            _ask(contracts.allocationManager, abi.encodeCall(IAllocationManager.totalAgentCaps, (vault)));
        figures.holdings = _holdings(contracts, vault);
        (figures.used, figures.counted) = _used(contracts, agentIds);
    }

    /// @inheritdoc IServiceReader
    function agentByERC8004(Contracts calldata contracts, uint256 erc8004AgentId)
        external
        returns (Block memory at, uint256 agentId, AgentAnswers memory agent)
    {
        at = _block();
        agentId =
            _word(_ask(contracts.agentRegistry, abi.encodeCall(IAgentRegistry.agentIdByERC8004, (erc8004AgentId))), 0);
        if (agentId != 0) agent = _agent(contracts, agentId);
    }

    /// @inheritdoc IServiceReader
    function linkTerms(Contracts calldata contracts, uint256 agentId)
        external
        returns (
            Block memory at,
            AgentAnswers memory agent,
            Answer memory domain,
            Answer memory ownerNonce,
            Answer memory identityRegistry
        )
    {
        address registry = contracts.agentRegistry;
        at = _block();
        agent = _agent(contracts, agentId);
        domain = _ask(registry, abi.encodeCall(IERC5267.eip712Domain, ()));
        ownerNonce = _ask(registry, abi.encodeCall(IAgentRegistry.nonces, (_address(agent.record, AGENT_OWNER))));
        identityRegistry = _ask(registry, abi.encodeCall(IAgentRegistry.erc8004IdentityRegistry, ()));
    }

    /// @inheritdoc IServiceReader
    function ownerTerms(Contracts calldata contracts, uint256 agentId)
        external
        returns (Block memory at, OwnerTerms memory terms)
    {
        at = _block();
        terms.agent = _agent(contracts, agentId);
        terms.intentNonce = _ask(contracts.tradeRouter, abi.encodeCall(ITradeRouter.nonces, (agentId)));
        terms.openPositionIds =
            _ask(contracts.positionManager, abi.encodeCall(IPositionManager.getOpenPositionIds, (agentId)));
        address controls = _ownerControls(contracts);
        terms.ownerControls = controls;
        if (controls == address(0)) return (at, terms);
        terms.domain = _ask(controls, abi.encodeCall(IERC5267.eip712Domain, ()));
        address owner = _address(terms.agent.record, AGENT_OWNER);
        terms.ownerNonce = _ask(controls, abi.encodeCall(IOwnerControls.nonces, (owner)));
        terms.mandate = _ask(controls, abi.encodeCall(IOwnerControls.mandateOf, (agentId)));
        terms.pendingOwner = _ask(controls, abi.encodeCall(IOwnerControls.pendingOwnerOf, (agentId)));
        address pending = _address(terms.pendingOwner, 0);
        terms.pendingOwnerNonce = _ask(controls, abi.encodeCall(IOwnerControls.nonces, (pending)));

        terms.vaultTokens = _allowedTokens(_address(terms.agent.record, AGENT_VAULT));
        terms.allowed = new Answer[](terms.vaultTokens.length);
        for (uint256 i; i < terms.allowed.length; ++i) {
            bytes memory call = abi.encodeCall(IOwnerControls.isTokenAllowed, (agentId, terms.vaultTokens[i]));
            terms.allowed[i] = _ask(controls, call);
        }
    }

    function _block() private returns (Block memory) {
        Answer memory arbitrum = _ask(ARB_SYS, abi.encodePacked(ARB_BLOCK_NUMBER));
        return Block({
            number: arbitrum.success ? _word(arbitrum, 0) : block.number,
            timestamp: block.timestamp,
            chainId: block.chainid
        });
    }

    function _agent(Contracts calldata contracts, uint256 agentId) private returns (AgentAnswers memory agent) {
        agent.record = _ask(contracts.agentRegistry, abi.encodeCall(IAgentRegistry.getAgent, (agentId)));
        agent.isOwnerCurrent =
            _ask(contracts.agentRegistry, abi.encodeCall(IAgentRegistry.isERC8004OwnerCurrent, (agentId)));
    }

    function _trackConfig(Contracts calldata contracts, AgentAnswers memory agent) private returns (Answer memory) {
        address vault = _address(agent.record, AGENT_VAULT);
        uint256 track = _word(agent.record, AGENT_TRACK);
        return
            _ask(contracts.vaultTrackRegistry, abi.encodeCall(IVaultTrackRegistry.getVaultTrackConfig, (vault, track)));
    }

    /// @dev What the ledger of an allocation manager adds to the protocol.
    function _ledger(address allocations, uint256 agentId)
        private
        returns (Answer memory cap, Answer memory trackRecord)
    {
        cap = _ask(allocations, abi.encodeCall(IAllocationManager.effectiveCapUsdc, (agentId)));
        trackRecord = _ask(allocations, abi.encodeCall(IAllocationManager.trackRecordOf, (agentId)));
    }

    function _policy(Contracts calldata contracts, AgentAnswers memory agent) private returns (Answer memory) {
        Answer memory policy = _ask(contracts.tradeRouter, abi.encodeCall(ITradeRouter.tradePolicy, ()));
        address vault = _address(agent.record, AGENT_VAULT);
        uint256 track = _word(agent.record, AGENT_TRACK);
        return _ask(_address(policy, 0), abi.encodeCall(ITradePolicy.limitsOf, (vault, track)));
    }

    function _fillExtension(Contracts calldata contracts, uint256 agentId, Terms memory terms) private {
        uint256 yesterday = terms.day - 1;
        terms.capitalMode =
            _ask(contracts.allocationManager, abi.encodeCall(IAllocationManager.capitalModeOf, (agentId)));
        (terms.effectiveCap, terms.trackRecord) = _ledger(contracts.allocationManager, agentId);
        terms.waste = _ask(contracts.allocationManager, abi.encodeCall(IAllocationManager.wasteOf, (agentId)));
        terms.policy = _policy(contracts, terms.agent);
        terms.previousTurnover =
            _ask(contracts.tradeRouter, abi.encodeCall(ITradeRouter.dailyTurnoverUsdc, (agentId, yesterday)));
        terms.previousRealizedPnl =
            _ask(contracts.tradeRouter, abi.encodeCall(ITradeRouter.dailyRealizedPnlUsdc, (agentId, yesterday)));
        terms.mandate = _ask(_ownerControls(contracts), abi.encodeCall(IOwnerControls.mandateOf, (agentId)));
    }

    function _fillOrders(Contracts calldata contracts, Subject calldata subject, Terms memory terms) private {
        address book = _address(_ask(contracts.agentRegistry, abi.encodeCall(IAgentRegistry.orderBook, ())), 0);
        if (book == address(0)) return;
        terms.orderDomain = _ask(book, abi.encodeCall(IERC5267.eip712Domain, ()));
        terms.openOrderCount = _ask(book, abi.encodeCall(IOrderBook.openOrderCount, (subject.agentId)));
        terms.maxOpenOrders = _ask(book, abi.encodeCall(IOrderBook.MAX_OPEN_ORDERS, ()));
        if (subject.orderId == 0) return;
        terms.orderState = _ask(book, abi.encodeCall(IOrderBook.orderStateOf, (subject.agentId, subject.orderId)));
    }

    function _ownerControls(Contracts calldata contracts) private returns (address) {
        return _address(_ask(contracts.agentRegistry, abi.encodeCall(IAgentRegistry.ownerControls, ())), 0);
    }

    function _fillVenuePrices(Contracts calldata contracts, address token, Terms memory terms) private {
        Answer memory policy = _ask(contracts.tradeRouter, abi.encodeCall(ITradeRouter.tradePolicy, ()));
        terms.isTwapRequired = _ask(_address(policy, 0), abi.encodeCall(ITradePolicy.isTwapRequired, (token)));
        if (!terms.policy.success) return;
        uint256 window = _word(terms.policy, LIMITS_TWAP_DEVIATION) == 0 ? 0 : _word(terms.policy, LIMITS_TWAP_WINDOW);
        // forge-lint: disable-next-line(unsafe-typecast)
        terms.venuePrices = _ask(contracts.swapAdapter, abi.encodeCall(ISwapAdapter.pricesOf, (token, uint32(window))));
    }

    function _dailyRealizedPnl(Contracts calldata contracts, uint256 agentId) private returns (Answer memory) {
        uint256 day = block.timestamp / 1 days;
        return _ask(contracts.tradeRouter, abi.encodeCall(ITradeRouter.dailyRealizedPnlUsdc, (agentId, day)));
    }

    function _vault(address vault) private returns (VaultAnswers memory answers) {
        answers.tradingPaused = _ask(vault, abi.encodeCall(IMandateVault.tradingPaused, ()));
        answers.totalAssets = _ask(vault, abi.encodeCall(IERC4626.totalAssets, ()));
        answers.idleAssets = _ask(vault, abi.encodeCall(IMandateVault.idleAssets, ()));
        answers.asset = _ask(vault, abi.encodeCall(IERC4626.asset, ()));
        answers.maxPriceAge = _ask(vault, abi.encodeCall(IMandateVault.maxPriceAge, ()));

        answers.allowedTokens = _allowedTokens(vault);
    }

    function _allowedTokens(address vault) private returns (address[] memory tokens) {
        uint256 count = _word(_ask(vault, abi.encodeCall(IMandateVault.allowedTokenCount, ())), 0);
        tokens = new address[](count < MAX_ALLOWED_TOKENS ? count : MAX_ALLOWED_TOKENS);
        for (uint256 i; i < tokens.length; ++i) {
            tokens[i] = _address(_ask(vault, abi.encodeCall(IMandateVault.allowedTokenAt, (i))), 0);
        }
    }

    function _holdings(Contracts calldata contracts, address vault) private returns (Holding[] memory holdings) {
        address[] memory tokens = _allowedTokens(vault);
        holdings = new Holding[](tokens.length);
        for (uint256 i; i < tokens.length; ++i) {
            address token = tokens[i];
            Answer memory amount = _ask(vault, abi.encodeCall(IMandateVault.tokenLedger, (token)));
            if (!amount.success) amount = _ask(token, abi.encodeCall(IERC20.balanceOf, (vault)));
            holdings[i] = Holding({
                token: token,
                amount: _word(amount, 0),
                round: _round(contracts, token),
                maxAge: _ask(contracts.priceOracle, abi.encodeCall(IPriceOracle.maxAgeOf, (token))),
                decimals: _decimals(contracts, token),
                multiplier: _multiplier(contracts, token)
            });
        }
    }

    function _used(Contracts calldata contracts, uint256[] calldata agentIds)
        private
        returns (uint256 used, uint256 counted)
    {
        for (; counted < agentIds.length && gasleft() > RESERVED_GAS; ++counted) {
            bytes memory call = abi.encodeCall(IAllocationManager.allocationUsed, (agentIds[counted]));
            unchecked {
                used += _word(_ask(contracts.allocationManager, call), 0);
            }
        }
    }

    function _worth(address vault) private returns (Worth memory worth) {
        Answer memory assets = _ask(vault, abi.encodeCall(IERC4626.totalAssets, ()));
        Answer memory idle = _ask(vault, abi.encodeCall(IMandateVault.idleAssets, ()));
        Answer memory shares = _ask(vault, abi.encodeCall(IERC20.totalSupply, ()));
        Answer memory decimals = _ask(vault, abi.encodeCall(IERC20Metadata.decimals, ()));
        uint256 power = _word(decimals, 0);
        Answer memory price = _ask(
            vault, abi.encodeCall(IERC4626.convertToAssets, (10 ** (power < MOST_DECIMALS ? power : MOST_DECIMALS)))
        );
        worth = Worth({
            isKnown: assets.success && idle.success && shares.success && decimals.success && price.success,
            totalAssets: _word(assets, 0),
            idleAssets: _word(idle, 0),
            totalShares: _word(shares, 0),
            sharePrice: _word(price, 0)
        });
    }

    function _equity(Contracts calldata contracts, uint256 agentId) private returns (Equity memory equity) {
        Answer memory allocation =
            _ask(contracts.allocationManager, abi.encodeCall(IAllocationManager.getAllocation, (agentId)));
        Answer memory realized =
            _ask(contracts.tradeRouter, abi.encodeCall(ITradeRouter.lifetimeRealizedPnlUsdc, (agentId)));
        Answer memory ids =
            _ask(contracts.positionManager, abi.encodeCall(IPositionManager.getOpenPositionIds, (agentId)));
        equity.isKnown = realized.success && ids.success;
        if (!equity.isKnown) return equity;
        equity.cap = _word(allocation, ALLOCATION_CAP);
        equity.used = _word(allocation, ALLOCATION_USED);
        equity.realized = _signed(_word(realized, 0));
        _unrealized(contracts, ids, equity);

        address lens = contracts.tradeRouterLens;
        Answer memory peak = _ask(lens, abi.encodeCall(ITradeRouterLens.peakEquityUsdc, (agentId)));
        Answer memory current = _ask(lens, abi.encodeCall(ITradeRouterLens.currentEquityUsdc, (agentId)));
        Answer memory drawdown = _ask(lens, abi.encodeCall(ITradeRouterLens.currentDrawdownBps, (agentId)));
        // Unchecked: a malformed amount must not make the whole read fail.
        unchecked {
            equity.current = current.success ? _word(current, 0) : _equityAtLastPrices(contracts, agentId, equity);
            equity.peak = peak.success ? _word(peak, 0) : equity.cap;
            if (drawdown.success) {
                equity.drawdownBps = _word(drawdown, 0);
            } else if (equity.current < equity.peak) {
                equity.drawdownBps = (equity.peak - equity.current) * BPS / equity.peak;
            }
        }
        if (equity.peak < equity.current) equity.peak = equity.current;
    }

    /// @dev Counts the results on the present track; without the extension, an agent has all its results on one track.
    function _equityAtLastPrices(Contracts calldata contracts, uint256 agentId, Equity memory equity)
        private
        returns (uint256)
    {
        (, Answer memory record) = _ledger(contracts.allocationManager, agentId);
        int256 realized = record.success ? _signed(_word(record, RECORD_REALIZED)) : equity.realized;
        // Unchecked: a malformed amount must not make the whole read fail.
        unchecked {
            int256 sum = _signed(equity.cap) + realized + equity.unrealized;
            // forge-lint: disable-next-line(unsafe-typecast)
            return sum > 0 ? uint256(sum) : 0;
        }
    }

    /// @dev Adds up the open positions, at the last known price where there is no fresh one.
    function _unrealized(Contracts calldata contracts, Answer memory ids, Equity memory equity) private {
        uint256 count = _listed(ids);
        address[] memory stale = new address[](count);
        uint256 staleCount;
        for (uint256 i; i < count; ++i) {
            uint256 id = _word(ids, i + 2);
            ++equity.openCount;
            Answer memory pnl =
                _ask(contracts.tradeRouterLens, abi.encodeCall(ITradeRouterLens.positionUnrealizedPnlUsdc, (id)));
            int256 value = _signed(_word(pnl, 0));
            if (!pnl.success) {
                Answer memory record = _record(contracts, id);
                address token = _address(record, POSITION_TOKEN);
                stale[staleCount++] = token; // an agent has one open position of a token
                value = _lastKnownPnl(contracts, token, record);
            }
            unchecked {
                equity.unrealized += value;
            }
        }
        assembly ("memory-safe") {
            mstore(stale, staleCount)
        }
        equity.staleTokens = stale;
    }

    function _lastKnownPnl(Contracts calldata contracts, address token, Answer memory record) private returns (int256) {
        Answer memory round = _round(contracts, token);
        Answer memory decimals = _decimals(contracts, token);
        if (!round.success || !decimals.success) return 0;
        uint256 amount = _word(record, POSITION_AMOUNT);
        uint256 price = _word(round, ROUND_ANSWER);
        uint256 power = _word(decimals, 0);
        if (amount > MOST_ROOM || price >= MOST_ROOM || power > MOST_DECIMALS) return 0;
        unchecked {
            return _signed(PriceMath.usdcValue(amount, price, power)) - _signed(_word(record, POSITION_COST));
        }
    }

    function _token(Contracts calldata contracts, address vault, uint256 agentId, address token)
        private
        returns (TokenAnswers memory answers)
    {
        answers.isAllowed = _ask(vault, abi.encodeCall(IMandateVault.isAllowedToken, (token)));
        answers.round = _round(contracts, token);
        answers.maxAge = _ask(contracts.priceOracle, abi.encodeCall(IPriceOracle.maxAgeOf, (token)));
        answers.openPositionId =
            _ask(contracts.positionManager, abi.encodeCall(IPositionManager.openPositionId, (agentId, token)));
        answers.decimals = _decimals(contracts, token);
        answers.description = _ask(contracts.tokenRegistry, abi.encodeCall(ITokenRegistry.descriptionOf, (token)));
        answers.multiplier = _multiplier(contracts, token);
        answers.newMultiplier = _ask(token, abi.encodePacked(NEW_UI_MULTIPLIER), TOKEN_GAS);
        answers.effectiveAt = _ask(token, abi.encodePacked(EFFECTIVE_AT), TOKEN_GAS);
        answers.restriction = _ask(
            contracts.tokenRegistry, abi.encodeCall(ITokenRegistry.restrictionOf, (token, vault, type(uint256).max))
        );
        answers.ledger = _ask(vault, abi.encodeCall(IMandateVault.tokenLedger, (token)));
    }

    /// @dev The token's own word where the registry does not know multipliers.
    function _multiplier(Contracts calldata contracts, address token) private returns (Answer memory multiplier) {
        multiplier = _ask(contracts.tokenRegistry, abi.encodeCall(ITokenRegistry.multiplierOf, (token)));
        if (!multiplier.success) multiplier = _ask(token, abi.encodePacked(UI_MULTIPLIER), TOKEN_GAS);
    }

    function _round(Contracts calldata contracts, address token) private returns (Answer memory) {
        return _ask(contracts.priceOracle, abi.encodeCall(IPriceOracle.latestRoundData, (token)));
    }

    function _decimals(Contracts calldata contracts, address token) private returns (Answer memory) {
        return _ask(contracts.tokenRegistry, abi.encodeCall(ITokenRegistry.tokenDecimals, (token)));
    }

    function _openPositions(Contracts calldata contracts, uint256 agentId)
        private
        returns (Answer memory ids, PositionAnswers[] memory positions)
    {
        ids = _ask(contracts.positionManager, abi.encodeCall(IPositionManager.getOpenPositionIds, (agentId)));
        positions = new PositionAnswers[](_listed(ids));
        for (uint256 i; i < positions.length; ++i) {
            positions[i] = _position(contracts, _word(ids, i + 2));
        }
    }

    /// @dev Returns the length of a returned list, which starts after its offset and its length.
    function _listed(Answer memory list) private pure returns (uint256) {
        uint256 count = _word(list, 1);
        return count < list.data.length / 32 ? count : 0;
    }

    function _position(Contracts calldata contracts, uint256 id) private returns (PositionAnswers memory position) {
        position.record = _record(contracts, id);
        position.exitRules = _ask(contracts.positionManager, abi.encodeCall(IPositionManager.getExitRules, (id)));
        position.capitalMode = _ask(contracts.positionManager, abi.encodeCall(IPositionManager.capitalModeOf, (id)));
        if (_isOpen(position.record)) {
            position.exitState = _ask(contracts.tradeRouterLens, abi.encodeCall(ITradeRouterLens.exitStateOf, (id)));
            position.unrealizedPnl =
                _ask(contracts.tradeRouterLens, abi.encodeCall(ITradeRouterLens.positionUnrealizedPnlUsdc, (id)));
            position.multiplier = _multiplier(contracts, _address(position.record, POSITION_TOKEN));
        }
    }

    function _record(Contracts calldata contracts, uint256 id) private returns (Answer memory) {
        return _ask(contracts.positionManager, abi.encodeCall(IPositionManager.getPosition, (id)));
    }

    function _isOpen(Answer memory record) private pure returns (bool) {
        return record.success && _word(record, POSITION_STATUS) == uint256(IPositionManager.PositionStatus.Open);
    }

    /// @dev What the venue gives for a share of the position, or for amounts up to the allocation's room.
    function _quote(Contracts calldata contracts, Subject calldata subject, address token, Terms memory terms) private {
        Answer memory listed = _ask(contracts.swapAdapter, abi.encodeCall(IUniswapV3SwapAdapter.poolFeesOf, (token)));
        if (!listed.success) listed = _ask(contracts.swapAdapter, abi.encodeCall(ISwapAdapter.poolFeeOf, (token)));
        if (contracts.quoter == address(0) || contracts.usdc == address(0) || !listed.success) return;
        uint24[4] memory fees;
        for (uint256 i; i < fees.length; ++i) {
            // forge-lint: disable-next-line(unsafe-typecast)
            fees[i] = uint24(_word(listed, i));
        }
        terms.quoted = true;
        if (subject.exitBps != 0) {
            uint256 held = _word(terms.position.record, POSITION_AMOUNT);
            if (held > MOST_ROOM || subject.exitBps > BPS) return;
            terms.sale.amountIn = held * subject.exitBps / BPS;
            _fill(terms.sale, contracts.quoter, fees, token, contracts.usdc);
            return;
        }
        terms.fills = _probes(terms, subject.usdcAmount);
        for (uint256 i; i < terms.fills.length; ++i) {
            _fill(terms.fills[i], contracts.quoter, fees, contracts.usdc, token);
        }
    }

    function _probes(Terms memory terms, uint256 usdcAmount) private pure returns (Fill[] memory fills) {
        uint256 cap =
            terms.effectiveCap.success ? _word(terms.effectiveCap, 0) : _word(terms.allocation, ALLOCATION_CAP);
        uint256 used = _word(terms.allocation, ALLOCATION_USED);
        uint256 room = cap > used ? cap - used : 0;
        if (room > MOST_ROOM) room = MOST_ROOM;

        fills = new Fill[](256);
        fills[0].amountIn = usdcAmount;
        uint256 count = 1;
        for (uint256 share = PROBES; share > 0; --share) {
            fills[count++].amountIn = room * share / PROBES;
        }
        for (uint256 amount = room / PROBES / 2; amount > LEAST_PROBE; amount /= 2) {
            fills[count++].amountIn = amount;
        }
        assembly ("memory-safe") {
            mstore(fills, count)
        }
    }

    /// @dev The best of all pools, as the adapter chooses. One that took all gas of a probe is not probed again.
    function _fill(Fill memory fill, address quoter, uint24[4] memory fees, address tokenIn, address tokenOut) private {
        for (uint256 i; i < fees.length; ++i) {
            if (fill.amountIn == 0 || gasleft() < RESERVED_GAS) return;
            if (fees[i] == 0) continue;
            IUniswapV3QuoterV2.QuoteExactInputSingleParams memory params =
                IUniswapV3QuoterV2.QuoteExactInputSingleParams(tokenIn, tokenOut, fill.amountIn, fees[i], 0);
            bytes memory call = abi.encodeCall(IUniswapV3QuoterV2.quoteExactInputSingle, (params));
            Answer memory answer = _ask(quoter, call, QUOTE_GAS);
            if (!answer.success && i != 0) fees[i] = 0;
            // At an end of the pool's prices, it ran out of liquidity.
            uint256 price = _word(answer, 1);
            if (price <= PoolPrice.LOWEST_SQRT_PRICE || price >= PoolPrice.HIGHEST_SQRT_PRICE) continue;
            fill.amountOut = Math.max(fill.amountOut, _word(answer, 0));
        }
    }

    function _truncate(PositionAnswers[] memory positions, uint256 length) private pure {
        assembly ("memory-safe") {
            mstore(positions, length)
        }
    }

    function _ask(address target, bytes memory call) private returns (Answer memory) {
        return _ask(target, call, gasleft());
    }

    /// @dev A call to an address without code succeeds without data, which counts as a failure.
    function _ask(address target, bytes memory call, uint256 gas) private returns (Answer memory answer) {
        (answer.success, answer.data) = target.call{gas: gas}(call);
        if (answer.data.length < 32) answer.success = false;
    }

    /// @dev Returns the word at `index`; 0 when the call failed or returned less.
    function _word(Answer memory answer, uint256 index) private pure returns (uint256 word) {
        bytes memory data = answer.data;
        if (!answer.success || data.length / 32 <= index) return 0;
        assembly ("memory-safe") {
            word := mload(add(add(data, 32), mul(index, 32)))
        }
    }

    function _signed(uint256 word) private pure returns (int256) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return int256(word);
    }

    function _address(Answer memory answer, uint256 index) private pure returns (address) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return address(uint160(_word(answer, index)));
    }
}
