// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Vm} from "forge-std/Vm.sol";
import {PriceOracle} from "../../src/PriceOracle.sol";
import {TradeRouter} from "../../src/TradeRouter.sol";
import {TradeRouterLens} from "../../src/TradeRouterLens.sol";
import {UniswapV3SwapAdapter} from "../../src/adapters/UniswapV3SwapAdapter.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {IntentDigests} from "../router/IntentDigests.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice Two agents on real capital and two on paper, whose owner locks shares for them, an honest one that trades at fair prices,
/// two tokens, an adversary who moves the pools and donates, weekends, and everybody who may do something to them, in any order
contract ProtocolInvariants is ProtocolTest {
    uint256 private constant AGENTS = 4;
    uint16 private constant FIRST_LOSS_BPS = 1_400;

    /// @param excessLosses Trades that cost the vault more than the policy allows
    /// @param excessCaps Grants of real capital beyond the vault's assets
    /// @param stuckExits Due exits that sold nothing at a fresh price, with the pool at that price
    /// @param stuckCloses Force closes that failed with the pool at the last known price
    /// @param unpaidLosses Losses on real capital that depositors bore while shares were left that answer for them
    /// @param overpaidLosses Shares burned for more than an agent has ever lost on its track
    /// @param honestRefusals Trades at fair prices that were refused for what they cost
    /// @param movedByDonations Donations that changed what the vault or a share is worth
    struct Flow {
        uint256 deposited;
        uint256 withdrawn;
        uint256 toStrangers;
        uint256 overpaidBounties;
        uint256 excessLosses;
        uint256 excessCaps;
        uint256 stuckExits;
        uint256 stuckCloses;
        uint256 unpaidLosses;
        uint256 overpaidLosses;
        uint256 honestRefusals;
        uint256 movedByDonations;
    }

    /// @param worst The most that the agent had lost on its track, and `paid` what locked shares paid of it
    /// @param burned The shares that the present action burned
    struct Losses {
        int256 pnl;
        uint256 worst;
        uint256 paid;
        uint256 burned;
    }

    uint256[] private team;
    uint256 private honest;
    mapping(uint256 agent => uint256) private accepted;
    mapping(uint256 agent => Losses) private losses;
    mapping(bytes32 action => uint256) private done;
    Flow private flow;

    /// @dev Looks at every transfer of USDC out of the vault that the action makes. `payee` may be paid besides the
    /// adapter.
    modifier watched(address payee) {
        vm.recordLogs();
        _;
        _watchLogs(payee);
    }

    /// @dev A purchase loses at most the policy's entry slippage of what is paid, at the oracle's price.
    modifier buying(uint256 amount) {
        vm.recordLogs();
        uint256 before = vault.totalAssets();
        _;
        if (vault.totalAssets() + _amount(amount) * 100 / 10_000 + 4 < before) ++flow.excessLosses;
        _watchLogs(address(0));
    }

    /// @dev A sale of at most `value` USDC loses at most the policy's exit slippage, at the oracle's price. Valuations
    /// round by a unit per token.
    modifier trading(uint256 value, address payee) {
        vm.recordLogs();
        uint256 before = vault.totalAssets();
        _;
        if (vault.totalAssets() + value * 300 / 10_000 + 4 < before) ++flow.excessLosses;
        _watchLogs(payee);
    }

    function _watchLogs(address payee) private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].emitter == address(usdc) && logs[i].topics[0] == IERC20.Transfer.selector) {
                _watch(logs[i], payee);
            } else if (logs[i].topics[0] == IAllocationManager.FirstLossPaid.selector) {
                (uint256 shares, uint256 loss) = abi.decode(logs[i].data, (uint256, uint256));
                Losses storage paying = losses[uint256(logs[i].topics[1])];
                paying.paid += loss;
                paying.burned += shares;
            }
        }
        for (uint256 i; i < AGENTS; ++i) {
            _watchLosses(team[i]);
        }
    }

    /// @dev After a sale on real capital, what the agent has lost on its track is paid as far as its locked shares go, each loss
    /// once, by shares that were worth it.
    function _watchLosses(uint256 agent) private {
        Losses storage book = losses[agent];
        int256 pnl = allocations.trackRecordOf(agent).realizedPnl;
        uint256 burned = book.burned;
        book.burned = 0;
        if (pnl == book.pnl) return;
        book.pnl = pnl;
        uint256 loss = pnl < 0 ? uint256(-pnl) : 0;
        if (loss > book.worst) book.worst = loss;
        if (book.paid > book.worst) ++flow.overpaidLosses;
        (, uint256 left,,) = allocations.firstLossOf(agent);
        if (left == 0 || allocations.capitalModeOf(agent) == uint8(IVaultTrackRegistry.CapitalMode.Simulated)) return;
        if (book.paid < loss) ++flow.unpaidLosses;
        if (burned != 0) ++done["lossPaid"];
    }

    function setUp() public override {
        super.setUp();
        flow.deposited = DEPOSITED;
        team.push(agentId);
        team.push(_register(vm.addr(signerKey + 1)));
        _offerPaperAndPromotion();
        for (uint256 i = 2; i < AGENTS; ++i) {
            team.push(_register(vm.addr(signerKey + i)));
        }
        _registerHonest();
        skip(5 minutes);
        _repeatPrice(nvda);
        _repeatPrice(tsla);

        // What trades is tried more often than what stops trading.
        bytes4[] memory actions = new bytes4[](44);
        actions[0] = this.open.selector;
        actions[1] = this.open.selector;
        actions[2] = this.open.selector;
        actions[3] = this.open.selector;
        actions[4] = this.add.selector;
        actions[5] = this.add.selector;
        actions[6] = this.reduce.selector;
        actions[7] = this.reduce.selector;
        actions[8] = this.updateLadder.selector;
        actions[9] = this.updateLadder.selector;
        actions[10] = this.movePrice.selector;
        actions[11] = this.movePrice.selector;
        actions[12] = this.executeExit.selector;
        actions[13] = this.executeExit.selector;
        actions[14] = this.executeExit.selector;
        actions[15] = this.forceClose.selector;
        actions[16] = this.suspend.selector;
        actions[17] = this.pauseTrading.selector;
        actions[18] = this.pauseRegistry.selector;
        actions[19] = this.deposit.selector;
        actions[20] = this.withdraw.selector;
        actions[21] = this.nextDay.selector;
        actions[22] = this.pushPool.selector;
        actions[23] = this.pushPool.selector;
        actions[24] = this.postLate.selector;
        actions[25] = this.executeBatch.selector;
        actions[26] = this.promote.selector;
        actions[27] = this.cancelNonce.selector;
        actions[28] = this.migrateRouter.selector;
        actions[29] = this.mustExit.selector;
        actions[30] = this.mustClose.selector;
        actions[31] = this.migrateOracle.selector;
        actions[32] = this.promote.selector;
        actions[33] = this.promote.selector;
        actions[34] = this.thinPool.selector;
        actions[35] = this.thinPool.selector;
        actions[36] = this.lock.selector;
        actions[37] = this.lock.selector;
        actions[38] = this.lock.selector;
        actions[39] = this.donate.selector;
        actions[40] = this.tradeFairly.selector;
        actions[41] = this.tradeFairly.selector;
        actions[42] = this.tradeFairly.selector;
        actions[43] = this.weekend.selector;
        targetContract(address(this));
        targetSelector(FuzzSelector({addr: address(this), selectors: actions}));
    }

    /// @dev Track 0 is on paper from now on and leads to real capital on track 1 after a trade, an hour and a lock. The vault
    /// has room for one such cap and those of track 0, so a second promotion is refused. Deposits and redemptions are priced with
    /// the pools as well.
    function _offerPaperAndPromotion() private {
        IVaultTrackRegistry.VaultTrackConfig memory config = _policy();
        (config.minTrades, config.evaluationPeriod, config.promotionScore) = (1, 1 hours, 0);
        _setPolicy(config);
        (config.trackId, config.initialAllocation, config.maxAllocation) = (1, 12 * CAP, 12 * CAP);
        config.maxStopLossBps = FIRST_LOSS_BPS - 300;
        _setPolicy(config);
        vm.startPrank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, uint8(IVaultTrackRegistry.CapitalMode.Simulated));
        tradePolicy.setLimits(address(vault), 0, _defaultLimits());
        tradePolicy.setLimits(address(vault), 1, _defaultLimits());
        tracks.setVaultTrackRiskTerms(address(vault), 0, IVaultTrackRegistry.RiskTerms(0, 100));
        tracks.setVaultTrackRiskTerms(address(vault), 1, IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS, 100));
        vault.setLiquidityPolicy(IMandateVault.LiquidityPolicy(15 minutes, 0, 2_000, 1 days, 0));
        _askPools(oracle);
        vm.stopPrank();
    }

    /// @dev On real capital, like the first two.
    function _registerHonest() private {
        vm.startPrank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, uint8(IVaultTrackRegistry.CapitalMode.Real));
        honest = agents.registerAgent(
            owner, address(vault), "Honest", "ipfs://agent", vm.addr(signerKey + AGENTS), false, 0
        );
        tracks.setVaultTrackCapitalMode(address(vault), 0, uint8(IVaultTrackRegistry.CapitalMode.Simulated));
        vm.stopPrank();
    }

    function _askPools(PriceOracle asked) private {
        asked.setSecondOpinion(address(nvda), IPriceOracle.SecondOpinion(address(adapter), 300));
        asked.setSecondOpinion(address(tsla), IPriceOracle.SecondOpinion(address(adapter), 300));
    }

    // Actions: each leaves the state alone when the protocol refuses it

    function open(uint256 agent, uint256 token, uint256 amount, uint256 ladder) external buying(amount) {
        uint256 key = _as(agent);
        ITradeRouter.PositionIntent memory intent = _openIntent(_token(token), _amount(amount));
        intent.exits = _someLadder(ladder);
        intent.maxSlippageBps = uint16(amount % 3 == 0 ? bound(amount, 0, 10_000) : 100);
        bytes memory signature = _sign(key, digests.hashOpenPosition(intent));
        _try("open", abi.encodeCall(router.openPosition, (intent, signature)));
    }

    function add(uint256 position, uint256 amount) external buying(amount) {
        uint256 id = _position(position);
        uint256 key = _asHolderOf(id);
        ITradeRouter.AddToPositionIntent memory intent = _addIntent(id, _amount(amount));
        intent.maxSlippageBps = uint16(amount % 3 == 0 ? bound(amount, 0, 10_000) : 100);
        bytes memory signature = _sign(key, digests.hashAddToPosition(intent));
        _try("add", abi.encodeCall(router.addToPosition, (intent, signature)));
    }

    function reduce(uint256 position, uint16 exitBps) external trading(_valueOf(_position(position)), address(0)) {
        uint256 id = _position(position);
        uint256 key = _asHolderOf(id);
        ITradeRouter.ReducePositionIntent memory intent =
            _reduceIntent(id, exitBps % 4 == 0 ? 10_000 : uint16(bound(exitBps, 1, 10_000)));
        bytes memory signature = _sign(key, digests.hashReducePosition(intent));
        _try("reduce", abi.encodeCall(router.reducePosition, (intent, signature)));
    }

    /// @dev A round trip of the honest agent: the pool is at the oracle's fresh price, whatever happened before, and the market moves in
    /// between. Its results may stop it, what its fills cost may not.
    function tradeFairly(uint256 token, uint256 amount, uint256 bps) external watched(address(0)) {
        StockToken traded = _token(token);
        _settleAt(traded, 10_000);
        agentId = honest;
        ITradeRouter.PositionIntent memory opening = _openIntent(traded, bound(amount, 10 * USDC, 20_000 * USDC));
        bytes memory signature = _sign(signerKey + AGENTS, digests.hashOpenPosition(opening));
        vm.prank(executor);
        (bool success, bytes memory reason) =
            address(router).call(abi.encodeCall(router.openPosition, (opening, signature)));
        if (!success) {
            if (bytes4(reason) == ITradeRouter.ExceedsWaste.selector) ++flow.honestRefusals;
            return;
        }
        _settleAt(traded, bound(bps, 9_750, 10_300));
        ITradeRouter.ReducePositionIntent memory closing = _reduceIntent(positions.positionCount(), 10_000);
        signature = _sign(signerKey + AGENTS, digests.hashReducePosition(closing));
        vm.prank(executor);
        (success,) = address(router).call(abi.encodeCall(router.reducePosition, (closing, signature)));
        if (!success) ++flow.honestRefusals;
        ++done["tradeFairly"];
    }

    /// @dev Markets are shut for 60 hours, and open at other prices.
    function weekend(uint256 bps) external watched(address(0)) {
        skip(60 hours);
        for (uint256 i; i < 2; ++i) {
            StockToken opened = _token(i);
            (uint256 price,,) = oracle.peekPrice(address(opened));
            _setPrice(opened, bound(price * bound(bps >> (16 * i), 9_000, 11_000) / 10_000, USD, 100_000 * USD));
        }
        ++done["weekend"];
    }

    function updateLadder(uint256 position, uint256 ladder) external watched(address(0)) {
        uint256 id = _position(position);
        uint256 key = _asHolderOf(id);
        ITradeRouter.UpdateExitLadderIntent memory intent = _updateIntent(id, _someLadder(ladder));
        bytes memory signature = _sign(key, digests.hashUpdateExitLadder(intent));
        _try("updateLadder", abi.encodeCall(router.updateExitLadder, (intent, signature)));
    }

    function movePrice(uint256 token, uint256 bps) external watched(address(0)) {
        StockToken moved = _token(token);
        (uint256 price,,) = oracle.peekPrice(address(moved));
        price = bound(price * bound(bps, 8_500, 11_800) / 10_000, USD, 100_000 * USD);
        _setPrice(moved, price);
        ++done["movePrice"];
    }

    function executeExit(uint256 position) external trading(_valueOf(_position(position)), keeper) {
        uint256 id = _position(position);
        vm.prank(keeper);
        (bool success,) = address(router).call(abi.encodeCall(router.executeExit, (id)));
        if (success) ++done["executeExit"];
    }

    function forceClose(uint256 position) external trading(_valueOf(_position(position)), address(0)) {
        uint256 id = _position(position);
        vm.prank(operator);
        (bool success,) = address(router).call(abi.encodeCall(router.forceClose, (id)));
        if (success) ++done["forceClose"];
    }

    function suspend(uint256 agent, uint256 seed) external watched(address(0)) {
        uint256 id = team[agent % AGENTS];
        IAgentRegistry.AgentStatus status =
            seed % 4 == 0 ? IAgentRegistry.AgentStatus.Suspended : IAgentRegistry.AgentStatus.Active;
        if (seed % 64 == 0) status = IAgentRegistry.AgentStatus.Failed;
        vm.prank(operator);
        (bool success,) = address(agents).call(abi.encodeCall(agents.setAgentStatus, (id, uint8(status))));
        if (success) ++done["suspend"];
    }

    function pauseTrading(uint256 seed) external watched(address(0)) {
        _pauseTrading(seed % 4 == 0);
        ++done["pauseTrading"];
    }

    function pauseRegistry(uint256 seed) external watched(address(0)) {
        bool paused = seed % 4 == 0;
        if (paused == agents.paused()) return;
        vm.prank(operator);
        if (paused) agents.pause();
        else agents.unpause();
        ++done["pauseRegistry"];
    }

    function deposit(uint256 amount) external watched(address(0)) {
        if (vault.maxDeposit(investor) == 0) return;
        amount = bound(amount, 1, 100_000 * USDC);
        _deposit(amount);
        flow.deposited += amount;
        ++done["deposit"];
    }

    function withdraw(uint256 amount) external watched(investor) {
        uint256 max = vault.maxWithdraw(investor);
        if (max == 0) return;
        amount = bound(amount, 1, max / 4 + 1);
        vm.prank(investor);
        vault.withdraw(amount, investor, investor);
        flow.withdrawn += amount;
        ++done["withdraw"];
    }

    function nextDay(uint256 seed) external watched(address(0)) {
        vm.warp((_today() + 1) * DAY + seed % DAY);
        // Now and then a day starts without prices.
        if (seed % 8 != 0) {
            _repeatPrice(nvda);
            _repeatPrice(tsla);
        }
        ++done["nextDay"];
    }

    /// @dev The adversary moves a pool and leaves the oracle behind.
    function pushPool(uint256 token, uint256 bps) external watched(address(0)) {
        StockToken pushed = _token(token);
        (uint256 price,,) = oracle.peekPrice(address(pushed));
        market.moveTo(address(pushed), price * bound(bps, 9_000, 11_000) / 10_000);
        ++done["pushPool"];
    }

    /// @dev A pool that takes a part of a position at a time.
    function thinPool(uint256 token, uint256 depth) external watched(address(0)) {
        _refill(_token(token), bound(depth, 50_000 * USDC, 1_000_000 * USDC));
        ++done["thinPool"];
    }

    /// @dev A price that was observed a while ago.
    function postLate(uint256 token, uint256 bps, uint256 age) external watched(address(0)) {
        address[] memory assets = new address[](1);
        int256[] memory prices = new int256[](1);
        uint64[] memory times = new uint64[](1);
        assets[0] = address(_token(token));
        (uint256 price,,) = oracle.peekPrice(assets[0]);
        prices[0] = int256(bound(price * bound(bps, 9_500, 10_500) / 10_000, USD, 100_000 * USD));
        times[0] = uint64(block.timestamp - age % 1 hours);
        vm.prank(updater);
        oracle.post(assets, prices, times);
        ++done["postLate"];
    }

    function executeBatch(uint256 seed) external trading(_valueOfAll(), address(this)) {
        uint256[] memory ids = new uint256[](4);
        for (uint256 i; i < ids.length; ++i) {
            ids[i] = _position(uint256(keccak256(abi.encode(seed, i))));
        }
        router.executeExits(ids);
        ++done["executeBatch"];
    }

    function promote(uint256 agent) external watched(address(0)) {
        uint256 id = team[agent % AGENTS];
        skip(1 hours);
        _repeatPrice(nvda);
        _repeatPrice(tsla);
        (bool success,) = address(agents).call(abi.encodeCall(agents.promoteAgent, (id, 1)));
        if (!success) return;
        if (allocations.totalAgentCaps(address(vault)) > vault.totalAssets()) ++flow.excessCaps;
        (,, uint256 locked,) = allocations.firstLossOf(id);
        if (locked < allocations.allocationCap(id) * FIRST_LOSS_BPS / 10_000) ++flow.excessCaps;
        delete losses[id];
        ++done["promote"];
    }

    /// @dev The owner deposits, and makes all of its free shares answer for one agent, or frees that agent's.
    function lock(uint256 agent, uint256 seed) external watched(address(0)) {
        uint256 id = team[agent % AGENTS];
        uint256 shares;
        if (seed % 4 != 0 && vault.maxDeposit(owner) != 0) {
            uint256 amount = bound(seed, 1, 100_000 * USDC);
            vm.prank(admin);
            usdc.mint(owner, amount);
            vm.startPrank(owner);
            usdc.approve(address(vault), amount);
            vault.deposit(amount, owner);
            vm.stopPrank();
            flow.deposited += amount;
            (, uint256 held,,) = allocations.firstLossOf(id);
            shares = held + vault.balanceOf(owner) - vault.firstLossShares(owner);
        }
        vm.prank(owner);
        (bool success,) =
            address(controls).call(abi.encodeCall(controls.lockFirstLoss, (id, shares, 0, block.timestamp, "")));
        if (success && shares != 0) ++done["lock"];
    }

    /// @dev Nothing that a stranger gives moves what the vault or a share is worth, or what agents may buy.
    function donate(uint256 token, uint256 amount) external watched(address(0)) {
        bytes32 before = _worth();
        amount = bound(amount, 1, 10_000_000 * USDC);
        vm.startPrank(admin);
        usdc.mint(address(vault), amount);
        _token(token).mint(address(vault), amount);
        vm.stopPrank();
        if (_worth() != before) ++flow.movedByDonations;
        ++done["donate"];
    }

    function _worth() private view returns (bytes32) {
        (uint256 assets, uint256 idle) = (vault.totalAssets(), vault.idleAssets());
        uint256 cap = allocations.effectiveCapUsdc(team[0]);
        return keccak256(
            abi.encode(
                assets, idle, cap, vault.previewRedeem(1e12), vault.previewDeposit(USDC), vault.maxDeposit(investor)
            )
        );
    }

    function cancelNonce(uint256 agent) external watched(address(0)) {
        uint256 id = team[agent % AGENTS];
        uint256 nonce = router.nonces(id);
        vm.prank(owner);
        router.cancelNonce(id, nonce);
        ++accepted[id];
        ++done["cancelNonce"];
    }

    /// @dev A new router and adapter over the same books, which continue nonces and records.
    function migrateRouter(uint256 seed) external watched(address(0)) {
        if (seed % 4 != 0) return;
        vm.startPrank(admin);
        _createRouter();
        adapter.setPool(address(nvda), market.FEE());
        adapter.setPool(address(tsla), market.FEE());
        router.setSwapAdapter(address(adapter));
        router.setKeeperBounty(10, 5 * USDC);
        router.grantRole(router.EXECUTOR_ROLE(), executor);
        router.grantRole(router.OPERATOR_ROLE(), operator);
        allocations.setTradeRouter(address(router));
        positions.setTradeRouter(address(router));
        vault.setTradeRouter(address(router));
        vm.stopPrank();
        _repeatPrice(nvda);
        _repeatPrice(tsla);
        lens = new TradeRouterLens(address(router));
        digests = new IntentDigests(address(router));
        ++done["migrateRouter"];
    }

    /// @dev A new oracle that continues the old one's prices and rounds.
    function migrateOracle(uint256 seed) external watched(address(0)) {
        if (seed % 4 != 0) return;
        address[] memory assets = new address[](2);
        (assets[0], assets[1]) = (address(nvda), address(tsla));
        PriceOracle next = new PriceOracle(admin);
        vm.startPrank(admin);
        next.grantRole(next.ORACLE_UPDATER_ROLE(), updater);
        next.inheritFrom(address(oracle), assets);
        _askPools(next);
        tokens.setPriceOracle(address(next));
        vault.syncPriceOracle();
        vm.stopPrank();
        oracle = next;
        ++done["migrateOracle"];
    }

    /// @dev Whatever happened before: an exit that is due sells at a fresh price, with the pool at that price.
    function mustExit(uint256 position) external trading(_valueOf(_position(position)), keeper) {
        uint256 id = _position(position);
        if (!_settle(id)) return;
        uint256 held = positions.getPosition(id).tokenAmount;
        if (!lens.isTriggerMet(id)) return;
        vm.prank(keeper);
        (bool success,) = address(router).call(abi.encodeCall(router.executeExit, (id)));
        if (!success || positions.getPosition(id).tokenAmount == held) ++flow.stuckExits;
        ++done["mustExit"];
    }

    /// @dev Whatever happened before: the operator closes for an agent that is not active, also while trading is paused.
    function mustClose(uint256 position) external trading(_valueOf(_position(position)), address(0)) {
        uint256 id = _position(position);
        if (!_settle(id)) return;
        uint256 agent = positions.getPosition(id).agentId;
        if (position % 2 == 0) _pauseTrading(true);
        vm.startPrank(operator);
        if (agents.statusOf(agent) == uint8(IAgentRegistry.AgentStatus.Active)) {
            bool isFailed = (position >> 8) % 8 == 0;
            agents.setAgentStatus(
                agent, uint8(isFailed ? IAgentRegistry.AgentStatus.Failed : IAgentRegistry.AgentStatus.Suspended)
            );
        }
        (bool success,) = address(router).call(abi.encodeCall(router.forceClose, (id)));
        vm.stopPrank();
        if (!success || positions.getPosition(id).tokenAmount != 0) ++flow.stuckCloses;
        ++done["mustClose"];
    }

    /// @dev The token's price moves to a share of itself, and the pool and its average have followed. In a pool of 5 million, an honest
    /// round trip of the largest trade loses 0.8 % beyond the fee.
    function _settleAt(StockToken token, uint256 bps) private {
        (uint256 price,,) = oracle.peekPrice(address(token));
        _setPrice(token, bound(price * bps / 10_000, USD, 100_000 * USD));
        _refill(token, 5_000_000 * USDC);
        skip(5 minutes);
        _repeatPrice(token);
    }

    /// @dev Brings the pool of an open position's token to the oracle's price, deep, and long enough for its average to
    /// follow.
    function _settle(uint256 id) private returns (bool) {
        if (id == 0 || id > positions.positionCount() || positions.getPosition(id).tokenAmount == 0) return false;
        StockToken token = StockToken(positions.getPosition(id).token);
        _pauseTrading(false);
        _refill(token, POOL_DEPTH);
        skip(5 minutes);
        _repeatPrice(token);
        return true;
    }

    /// @dev Leaves the pool at the oracle's price.
    function _refill(StockToken token, uint256 depth) private {
        (uint256 price,,) = oracle.peekPrice(address(token));
        market.moveTo(address(token), price);
        market.drain(address(token));
        market.addLiquidity(address(token), price, depth);
    }

    // What always holds

    function invariant_NoTradeLosesMoreThanThePolicyAllows() public view {
        assertEq(flow.excessLosses, 0);
    }

    function invariant_NoCapIsGrantedBeyondTheVaultsAssets() public view {
        assertEq(flow.excessCaps, 0);
        uint256 sum;
        for (uint256 i; i < AGENTS; ++i) {
            bool isRemoved = allocations.getAllocation(team[i]).status == 2;
            if (!isRemoved && allocations.capitalModeOf(team[i]) == uint8(IVaultTrackRegistry.CapitalMode.Real)) {
                sum += allocations.effectiveCapUsdc(team[i]);
            }
        }
        assertLe(sum, vault.totalAssets());
    }

    function invariant_DepositorsBearNoLossThatLockedSharesCover() public view {
        assertEq(flow.unpaidLosses, 0, "a loss was not paid");
        assertEq(flow.overpaidLosses, 0, "a loss was paid twice");
        uint256 locked;
        for (uint256 i; i < AGENTS; ++i) {
            (, uint256 shares,,) = allocations.firstLossOf(team[i]);
            locked += shares;
        }
        assertEq(vault.firstLossShares(owner), locked);
        assertLe(locked, vault.balanceOf(owner));
    }

    function invariant_AnAgentThatTradesAtFairPricesIsNeverRefusedForCost() public view {
        assertEq(flow.honestRefusals, 0);
        (uint256 waste, uint256 max,) = allocations.wasteOf(honest);
        assertLe(waste, max);
    }

    function invariant_NoDonationMovesWhatAShareIsWorth() public view {
        assertEq(flow.movedByDonations, 0);
        assertLe(vault.idleAssets(), usdc.balanceOf(address(vault)));
    }

    function invariant_DepositsPayAndRedemptionsGetTheWorsePrice() public view {
        uint256 fair = vault.convertToAssets(1e12);
        assertLe(vault.previewRedeem(1e12), fair);
        assertGe(vault.previewMint(1e12), fair);
    }

    function invariant_ADueExitExecutes() public view {
        assertEq(flow.stuckExits, 0);
    }

    function invariant_TheOperatorCanAlwaysClose() public view {
        assertEq(flow.stuckCloses, 0);
    }

    function invariant_NoLedgerExceedsWhatTheVaultHolds() public view {
        _checkLedger(nvda);
        _checkLedger(tsla);
    }

    function invariant_UsedIsTheCostOfTheOpenPositions() public view {
        for (uint256 i; i < AGENTS; ++i) {
            uint256[] memory ids = positions.getOpenPositionIds(team[i]);
            uint256 cost;
            for (uint256 j; j < ids.length; ++j) {
                cost += positions.getPosition(ids[j]).usdcCostBasis;
            }
            assertEq(allocations.allocationUsed(team[i]), cost);
        }
    }

    function invariant_NoncesCountTheAcceptedIntents() public view {
        for (uint256 i; i < AGENTS; ++i) {
            assertEq(router.nonces(team[i]), accepted[team[i]]);
        }
    }

    function invariant_AnOpenPositionHasAPendingRule() public view {
        uint256 count = positions.positionCount();
        for (uint256 id = 1; id <= count; ++id) {
            IPositionManager.Position memory position = positions.getPosition(id);
            if (position.status == uint8(IPositionManager.PositionStatus.Closed)) {
                assertEq(position.tokenAmount, 0);
                assertEq(position.usdcCostBasis, 0);
                continue;
            }
            IPositionManager.ExitRule[] memory rules = positions.getExitRules(id);
            assertLt(position.nextRuleIndex, rules.length);
            assertLe(rules.length, 5);
            assertEq(rules[rules.length - 1].exitBps, 10_000);
            assertEq(positions.openPositionId(position.agentId, position.token), id);
        }
    }

    function invariant_UsdcLeavesTheVaultOnlyToTheAdapterAKeeperOrAShareHolder() public view {
        assertEq(flow.toStrangers, 0);
        assertEq(flow.overpaidBounties, 0);
        assertEq(usdc.balanceOf(address(adapter)), 0);
        assertEq(usdc.balanceOf(address(router)), 0);
        assertEq(nvda.balanceOf(address(adapter)), 0);
        assertEq(tsla.balanceOf(address(adapter)), 0);
    }

    /// @dev Idle USDC is what was deposited and realized, less what was withdrawn and what is invested at cost; positions
    /// on paper count for nothing.
    function invariant_EveryUnitOfUsdcIsAccountedFor() public view {
        int256 realized;
        uint256 used;
        uint256 count = positions.positionCount();
        for (uint256 id = 1; id <= count; ++id) {
            if (positions.capitalModeOf(id) == uint8(IVaultTrackRegistry.CapitalMode.Simulated)) continue;
            IPositionManager.Position memory position = positions.getPosition(id);
            realized += position.realizedPnlUsdc;
            used += position.usdcCostBasis;
        }
        assertEq(int256(vault.idleAssets()), int256(flow.deposited) - int256(flow.withdrawn) + realized - int256(used));
    }

    function invariant_ProfitIsTheSameByPositionAndByAgent() public view {
        int256 byAgent = router.lifetimeRealizedPnlUsdc(honest);
        int256 byPosition;
        for (uint256 i; i < AGENTS; ++i) {
            byAgent += router.lifetimeRealizedPnlUsdc(team[i]);
        }
        uint256 count = positions.positionCount();
        for (uint256 id = 1; id <= count; ++id) {
            byPosition += positions.realizedPnlUsdc(id);
        }
        assertEq(byAgent, byPosition);
    }

    /// @dev A way through all actions: what the fuzzer composes can be done at all.
    function test_EveryActionCanSucceed() public {
        this.open(0, 0, 10_000 * USDC, 0);
        this.open(1, 1, 10_000 * USDC, 0);
        this.add(2, 1_000 * USDC);
        this.updateLadder(2, 1);
        this.reduce(1, 5_001);
        this.deposit(1_000 * USDC);
        this.withdraw(1_000 * USDC);
        this.movePrice(0, 11_800);
        this.executeExit(2);
        this.suspend(1, 0);
        this.forceClose(1);
        this.open(3, 1, 10_000 * USDC, 0);
        this.pushPool(1, 10_100);
        this.postLate(1, 10_000, 0);
        this.executeBatch(0);
        this.movePrice(1, 8_500);
        this.mustExit(_positionOf(3));
        this.nextDay(1);
        this.cancelNonce(3);
        this.lock(3, 100_000 * USDC - 1);
        this.promote(3);
        this.migrateRouter(0);
        this.migrateOracle(0);
        this.open(3, 1, 10_000 * USDC, 0);
        this.donate(0, 1);
        this.mustClose(_positionOf(3));
        this.thinPool(0, 0);
        this.pauseTrading(0);
        this.pauseRegistry(0);
        this.pauseTrading(1);
        this.pauseRegistry(1);
        this.tradeFairly(0, 1_000 * USDC, 10_000);
        this.weekend(0);
        bytes32[28] memory names = [
            bytes32("open"),
            "add",
            "reduce",
            "updateLadder",
            "movePrice",
            "executeExit",
            "forceClose",
            "suspend",
            "pauseTrading",
            "pauseRegistry",
            "deposit",
            "withdraw",
            "nextDay",
            "pushPool",
            "thinPool",
            "postLate",
            "executeBatch",
            "promote",
            "cancelNonce",
            "migrateRouter",
            "migrateOracle",
            "mustExit",
            "mustClose",
            "lock",
            "donate",
            "lossPaid",
            "tradeFairly",
            "weekend"
        ];
        for (uint256 i; i < names.length; ++i) {
            assertGt(done[names[i]], 0, string(abi.encodePacked(names[i])));
        }
    }

    /// @dev A seed that `_position` maps to the agent's open position.
    function _positionOf(uint256 agent) private view returns (uint256 seed) {
        uint256 id = positions.getOpenPositionIds(team[agent])[0];
        for (seed = 1; _position(seed) != id; ++seed) {}
    }

    /// @dev At the oracle's last price; nothing for a closed position or one on paper.
    function _valueOf(uint256 id) private view returns (uint256) {
        if (id == 0 || id > positions.positionCount()) return 0;
        if (positions.capitalModeOf(id) == uint8(IVaultTrackRegistry.CapitalMode.Simulated)) return 0;
        IPositionManager.Position memory position = positions.getPosition(id);
        (uint256 price,,) = oracle.peekPrice(position.token);
        return position.tokenAmount * price / (100 * 10 ** StockToken(position.token).decimals());
    }

    function _valueOfAll() private view returns (uint256 value) {
        uint256 count = positions.positionCount();
        for (uint256 id = 1; id <= count; ++id) {
            value += _valueOf(id);
        }
    }

    function _checkLedger(StockToken token) private view {
        uint256 sum;
        for (uint256 i; i < AGENTS; ++i) {
            sum += positions.agentTokenBalance(team[i], address(token));
        }
        assertEq(sum, positions.totalTokenLedger(address(token)));
        assertEq(sum, vault.tokenLedger(address(token)));
        assertLe(sum, token.balanceOf(address(vault)));
    }

    function _watch(Vm.Log memory log, address payee) private {
        address from = address(uint160(uint256(log.topics[1])));
        address to = address(uint160(uint256(log.topics[2])));
        if (from != address(vault) || to == address(adapter)) return;
        if (to != payee) ++flow.toStrangers;
        if (to == keeper && abi.decode(log.data, (uint256)) > router.maxKeeperBounty()) ++flow.overpaidBounties;
    }

    function _try(bytes32 action, bytes memory call) private {
        vm.prank(executor);
        (bool success,) = address(router).call(call);
        if (!success) return;
        ++accepted[agentId];
        ++done[action];
    }

    function _as(uint256 agent) private returns (uint256 key) {
        agent %= AGENTS;
        agentId = team[agent];
        return signerKey + agent;
    }

    function _asHolderOf(uint256 position) private returns (uint256 key) {
        uint256 holder = position <= positions.positionCount() ? positions.getPosition(position).agentId : team[0];
        return _as(holder - team[0]);
    }

    /// @dev Mostly one that is open; closed ones and strangers happen too.
    function _position(uint256 seed) private view returns (uint256) {
        uint256 count = positions.positionCount();
        if (seed % 8 != 0) {
            for (uint256 i; i < count; ++i) {
                uint256 id = 1 + (seed % count + i) % count;
                if (positions.getPosition(id).tokenAmount != 0) return id;
            }
        }
        return 1 + seed % (count + 1);
    }

    function _token(uint256 seed) private view returns (StockToken) {
        return seed % 2 == 0 ? nvda : tsla;
    }

    function _repeatPrice(StockToken token) private {
        (uint256 price,,) = oracle.peekPrice(address(token));
        _setOraclePrice(token, price);
    }

    function _amount(uint256 seed) private pure returns (uint256) {
        return bound(seed, 1, 21_000 * USDC);
    }

    /// @dev One in eight leaves a part of the position without a rule.
    function _someLadder(uint256 seed) private pure returns (IPositionManager.ExitRule[] memory) {
        int256 near = int256(100 + seed % 1_000);
        uint16 share = uint16(1 + (seed >> 16) % 10_000);
        if (seed % 4 == 0) return _threeRules();
        if (seed % 4 == 1) return _ladder(_take(near, share), _stop(-near, 10_000));
        if (seed % 4 == 2) return _ladder(_stop(-near, share), _take(near, share), _stop(-2 * near, 10_000));
        return _ladder(_stop(-near, seed % 8 == 3 ? share : 10_000));
    }
}
