// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {AgentRegistry} from "../../src/AgentRegistry.sol";
import {AllocationManager} from "../../src/AllocationManager.sol";
import {FeeManager} from "../../src/FeeManager.sol";
import {MandateVault} from "../../src/MandateVault.sol";
import {OrderBook} from "../../src/OrderBook.sol";
import {OwnerControls} from "../../src/OwnerControls.sol";
import {PositionManager} from "../../src/PositionManager.sol";
import {PriceOracle} from "../../src/PriceOracle.sol";
import {PromotionCriteria} from "../../src/PromotionCriteria.sol";
import {TokenRegistry} from "../../src/TokenRegistry.sol";
import {TradePolicy} from "../../src/TradePolicy.sol";
import {TradeRouter} from "../../src/TradeRouter.sol";
import {TradeRouterLens} from "../../src/TradeRouterLens.sol";
import {VaultTrackRegistry} from "../../src/VaultTrackRegistry.sol";
import {UniswapV3SwapAdapter} from "../../src/adapters/UniswapV3SwapAdapter.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {UsdcToken} from "../../src/embedded/UsdcToken.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradePolicy} from "../../src/interfaces/ITradePolicy.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {IntentDigests} from "./IntentDigests.sol";
import {UniswapMarket} from "./UniswapMarket.sol";

/// @notice The whole protocol on real Uniswap v3 pools, with one vault of a million USDC and one agent, and the words
/// that tests are written in
abstract contract ProtocolTest is Test {
    uint256 internal constant USDC = 1e6;
    uint256 internal constant USD = 1e8;
    uint256 internal constant DEPOSITED = 1_000_000 * USDC;
    uint256 internal constant CAP = 50_000 * USDC;
    uint256 internal constant MAX_TRADE = 20_000 * USDC;
    uint256 internal constant MAX_TURNOVER = 100_000 * USDC;
    uint256 internal constant MAX_LOSS = 5_000 * USDC;
    uint256 internal constant POOL_DEPTH = 100_000_000 * USDC;
    uint256 internal constant NVDA_PRICE = 100 * USD;
    uint256 internal constant TSLA_PRICE = 250 * USD;
    uint256 internal constant DAY = 1 days;

    address internal admin = makeAddr("admin");
    address internal operator = makeAddr("operator");
    address internal executor = makeAddr("executor");
    address internal updater = makeAddr("updater");
    address internal keeper = makeAddr("keeper");
    address internal investor = makeAddr("investor");
    address internal treasury = makeAddr("treasury");
    address internal owner = makeAddr("owner");
    uint256 internal signerKey = 0xA11CE;

    UsdcToken internal usdc;
    StockToken internal nvda;
    StockToken internal tsla;
    PriceOracle internal oracle;
    TokenRegistry internal tokens;
    VaultTrackRegistry internal tracks;
    AllocationManager internal allocations;
    FeeManager internal fees;
    AgentRegistry internal agents;
    OwnerControls internal controls;
    OrderBook internal orderBook;
    PositionManager internal positions;
    MandateVault internal vault;
    TradePolicy internal tradePolicy;
    TradeRouter internal router;
    UniswapV3SwapAdapter internal adapter;
    TradeRouterLens internal lens;
    IntentDigests internal digests;
    UniswapMarket internal market;

    uint256 internal agentId;

    function setUp() public virtual {
        vm.warp(20_000 * DAY + 12 hours);
        vm.startPrank(admin);
        _deployTokens();
        _deployProtocol();
        _configure();
        vm.stopPrank();

        _list(nvda, NVDA_PRICE);
        _list(tsla, TSLA_PRICE);
        _deposit(DEPOSITED);
        agentId = _register(vm.addr(signerKey));
        skip(1);
    }

    function _deployTokens() private {
        usdc = new UsdcToken(admin, "USD Coin", "USDC", "2");
        nvda = new StockToken("NVIDIA", "NVDA", 18, admin);
        tsla = new StockToken("Tesla", "TSLA", 8, admin);
        // Not `new`: its gas is measured, so it runs as the optimizer left it, unlike the tests (tools/solc).
        market = UniswapMarket(deployCode("UniswapMarket.sol:UniswapMarket", abi.encode(address(usdc))));
        usdc.grantRole(usdc.MINTER_ROLE(), address(market));
        nvda.grantRole(nvda.MINTER_ROLE(), address(market));
        tsla.grantRole(tsla.MINTER_ROLE(), address(market));
    }

    function _deployProtocol() private {
        oracle = new PriceOracle(admin);
        tokens = new TokenRegistry(admin, address(oracle));
        tracks = new VaultTrackRegistry(admin);
        allocations = new AllocationManager(admin, address(tracks));
        fees = new FeeManager(admin, address(usdc), treasury);
        agents = new AgentRegistry(admin, address(tracks), address(allocations), address(fees), address(0));
        controls = new OwnerControls(address(agents));
        orderBook = new OrderBook(address(agents));
        positions = new PositionManager(admin, address(agents), address(tracks));
        vault = new MandateVault(admin, address(usdc), "Genesis", "gUSDC", "genesis", address(tokens));
        tradePolicy = new TradePolicy(admin);
        _createRouter();
        lens = new TradeRouterLens(address(router));
        digests = new IntentDigests(address(router));
    }

    function _configure() private {
        allocations.setAgentRegistry(address(agents));
        allocations.setTradeRouter(address(router));
        fees.setAgentRegistry(address(agents));
        positions.setTradeRouter(address(router));
        vault.setTradeRouter(address(router));
        vault.setMaxPriceAge(1 hours);
        router.setSwapAdapter(address(adapter));
        agents.setOwnerControls(address(controls));
        agents.setOrderBook(address(orderBook));
        agents.setPromotionCriteria(address(new PromotionCriteria(address(agents))));
        router.setKeeperBounty(10, 5 * USDC);
        router.grantRole(router.EXECUTOR_ROLE(), executor);
        router.grantRole(router.EXECUTOR_ROLE(), address(orderBook));
        router.grantRole(router.OPERATOR_ROLE(), operator);
        agents.grantRole(agents.REGISTRAR_ROLE(), admin);
        agents.grantRole(agents.OPERATOR_ROLE(), operator);
        allocations.grantRole(allocations.OPERATOR_ROLE(), operator);
        tokens.grantRole(tokens.OPERATOR_ROLE(), operator);
        vault.grantRole(vault.OPERATOR_ROLE(), operator);
        oracle.grantRole(oracle.ORACLE_UPDATER_ROLE(), updater);
        tracks.registerVault(address(vault));
        tracks.setTrackType(IVaultTrackRegistry.TrackType(0, "CHALLENGE", 1, true));
        tracks.setTrackType(IVaultTrackRegistry.TrackType(1, "FUNDED", 1, true));
        tracks.setVaultTrackConfig(address(vault), 0, _policy());
        tradePolicy.setLimits(address(vault), 0, _wideLimits());
    }

    /// @dev Leaves prices and sizes to the test at hand; the tests of the policy set its default limits.
    /// @dev Creates a router with nothing but its adapter.
    function _createRouter() internal {
        router = new TradeRouter(
            admin,
            address(usdc),
            address(agents),
            address(allocations),
            address(positions),
            address(tracks),
            address(tradePolicy)
        );
        adapter = new UniswapV3SwapAdapter(admin, address(router), address(market.factory()), address(usdc));
    }

    function _wideLimits() internal pure returns (ITradePolicy.Limits memory limits) {
        limits.maxEntrySlippageBps = 1_000;
        limits.maxExitSlippageBps = 300;
        limits.exitSlippageStartBps = 50;
        limits.exitWideningSeconds = 15 minutes;
    }

    function _defaultLimits() internal pure returns (ITradePolicy.Limits memory) {
        return ITradePolicy.Limits({
            maxEntrySlippageBps: 100,
            maxExitSlippageBps: 300,
            exitSlippageStartBps: 50,
            exitWideningSeconds: 15 minutes,
            minTradeUsdc: 1e6,
            maxSpotDeviationBps: 300,
            maxTwapDeviationBps: 1_000,
            twapWindow: 5 minutes,
            maxDeadlineSeconds: 30 days
        });
    }

    function _useDefaultLimits() internal {
        _setLimits(_defaultLimits());
    }

    function _setLimits(ITradePolicy.Limits memory limits) internal {
        vm.prank(admin);
        tradePolicy.setLimits(address(vault), 0, limits);
    }

    function _policy() internal view returns (IVaultTrackRegistry.VaultTrackConfig memory config) {
        config.vault = address(vault);
        config.trackId = 0;
        config.initialAllocation = CAP;
        config.maxAllocation = 4 * CAP;
        config.maxDrawdownBps = 1_000;
        config.maxTradeSizeBps = 200;
        config.maxDailyTurnoverBps = 1_000;
        config.maxDailyLossBps = 1_000;
        config.evaluationPeriod = 30 days;
        config.minTrades = 10;
        config.promotionScore = 70;
        config.active = true;
        config.maxStopLossBps = 2_000;
        config.minTakeProfitBps = 100;
        config.maxTakeProfitBps = 10_000;
        config.requireStopLoss = true;
    }

    function _setPolicy(IVaultTrackRegistry.VaultTrackConfig memory config) internal {
        vm.prank(admin);
        tracks.setVaultTrackConfig(address(vault), config.trackId, config);
    }

    /// @dev A token that the market can mint for its pool.
    function _newToken(string memory symbol, uint8 decimals) internal returns (StockToken token) {
        token = new StockToken(symbol, symbol, decimals, admin);
        bytes32 minter = token.MINTER_ROLE();
        vm.prank(admin);
        token.grantRole(minter, address(market));
    }

    /// @dev A token with a price, a deep pool, and a place in the vault.
    function _list(StockToken token, uint256 price) internal {
        _listWithDepth(token, price, POOL_DEPTH);
    }

    function _listWithDepth(StockToken token, uint256 price, uint256 usdcDepth) internal {
        vm.startPrank(admin);
        tokens.registerToken(address(token));
        vault.enableToken(address(token));
        vm.stopPrank();
        market.createPool(address(token), price, usdcDepth);
        uint24 fee = market.feeOf(address(token));
        vm.prank(admin);
        adapter.setPool(address(token), fee);
        _setOraclePrice(token, price);
    }

    function _deposit(uint256 amount) internal {
        vm.prank(admin);
        usdc.mint(investor, amount);
        vm.startPrank(investor);
        usdc.approve(address(vault), amount);
        vault.deposit(amount, investor);
        vm.stopPrank();
    }

    function _register(address signer) internal returns (uint256) {
        vm.prank(admin);
        return agents.registerAgent(owner, address(vault), "Momentum", "ipfs://agent", signer, false, 0);
    }

    function _setStatus(IAgentRegistry.AgentStatus status) internal {
        vm.prank(operator);
        agents.setAgentStatus(agentId, uint8(status));
    }

    /// @dev Lets go of the criteria of track 0, and promotes the agent to track 1.
    function _promote() internal {
        IVaultTrackRegistry.VaultTrackConfig memory config = tracks.getVaultTrackConfig(address(vault), 0);
        (config.minTrades, config.evaluationPeriod, config.promotionScore) = (0, 0, 0);
        (config.maxDrawdownBps, config.maxDailyLossBps) = (0, 0);
        _setPolicy(config);
        vm.prank(admin);
        tradePolicy.setLimits(address(vault), 1, _wideLimits());
        agents.promoteAgent(agentId, 1);
    }

    function _pauseTrading(bool paused) internal {
        vm.prank(operator);
        vault.setTradingPaused(paused);
    }

    function _pauseRegistry() internal {
        vm.prank(operator);
        agents.pause();
    }

    function _setOraclePrice(StockToken token, uint256 price) internal {
        vm.prank(updater);
        oracle.setPrice(address(token), int256(price));
    }

    /// @dev A second later the oracle and the pool are at `price`.
    function _setPrice(StockToken token, uint256 price) internal {
        skip(1);
        _setOraclePrice(token, price);
        market.moveTo(address(token), price);
    }

    function _today() internal view returns (uint256) {
        return block.timestamp / DAY;
    }

    // Ladders

    function _stop(int256 triggerBps, uint16 exitBps) internal pure returns (IPositionManager.ExitRule memory) {
        return IPositionManager.ExitRule(uint8(IPositionManager.TriggerType.StopLoss), triggerBps, exitBps);
    }

    function _take(int256 triggerBps, uint16 exitBps) internal pure returns (IPositionManager.ExitRule memory) {
        return IPositionManager.ExitRule(uint8(IPositionManager.TriggerType.TakeProfit), triggerBps, exitBps);
    }

    function _ladder(IPositionManager.ExitRule memory a) internal pure returns (IPositionManager.ExitRule[] memory l) {
        l = new IPositionManager.ExitRule[](1);
        l[0] = a;
    }

    function _ladder(IPositionManager.ExitRule memory a, IPositionManager.ExitRule memory b)
        internal
        pure
        returns (IPositionManager.ExitRule[] memory l)
    {
        l = new IPositionManager.ExitRule[](2);
        (l[0], l[1]) = (a, b);
    }

    function _ladder(
        IPositionManager.ExitRule memory a,
        IPositionManager.ExitRule memory b,
        IPositionManager.ExitRule memory c
    ) internal pure returns (IPositionManager.ExitRule[] memory l) {
        l = new IPositionManager.ExitRule[](3);
        (l[0], l[1], l[2]) = (a, b, c);
    }

    /// @dev Half at +10 %, half of the rest at +20 %, all at -8 %.
    function _threeRules() internal pure returns (IPositionManager.ExitRule[] memory) {
        return _ladder(_take(1_000, 5_000), _take(2_000, 5_000), _stop(-800, 10_000));
    }

    // Intents

    function _openIntent(StockToken token, uint256 amount) internal view returns (ITradeRouter.PositionIntent memory) {
        return ITradeRouter.PositionIntent({
            agentId: agentId,
            vault: address(vault),
            token: address(token),
            usdcAmount: amount,
            minTokenOut: 0,
            maxSlippageBps: 100,
            exits: _threeRules(),
            deadline: block.timestamp + 600,
            nonce: router.nonces(agentId)
        });
    }

    function _addIntent(uint256 positionId, uint256 amount)
        internal
        view
        returns (ITradeRouter.AddToPositionIntent memory)
    {
        return ITradeRouter.AddToPositionIntent({
            agentId: agentId,
            positionId: positionId,
            usdcAmount: amount,
            minTokenOut: 0,
            maxSlippageBps: 100,
            deadline: block.timestamp + 600,
            nonce: router.nonces(agentId)
        });
    }

    function _reduceIntent(uint256 positionId, uint16 exitBps)
        internal
        view
        returns (ITradeRouter.ReducePositionIntent memory)
    {
        return ITradeRouter.ReducePositionIntent({
            agentId: agentId,
            positionId: positionId,
            exitBps: exitBps,
            deadline: block.timestamp + 600,
            nonce: router.nonces(agentId)
        });
    }

    function _updateIntent(uint256 positionId, IPositionManager.ExitRule[] memory exits)
        internal
        view
        returns (ITradeRouter.UpdateExitLadderIntent memory)
    {
        return ITradeRouter.UpdateExitLadderIntent({
            agentId: agentId,
            positionId: positionId,
            exits: exits,
            deadline: block.timestamp + 600,
            nonce: router.nonces(agentId)
        });
    }

    function _digest(ITradeRouter.PositionIntent memory intent) internal view returns (bytes32) {
        return digests.hashOpenPosition(intent);
    }

    function _digest(ITradeRouter.AddToPositionIntent memory intent) internal view returns (bytes32) {
        return digests.hashAddToPosition(intent);
    }

    function _digest(ITradeRouter.ReducePositionIntent memory intent) internal view returns (bytes32) {
        return digests.hashReducePosition(intent);
    }

    function _sign(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }

    function _submit(ITradeRouter.PositionIntent memory intent) internal returns (uint256) {
        bytes memory signature = _sign(signerKey, digests.hashOpenPosition(intent));
        vm.prank(executor);
        return router.openPosition(intent, signature);
    }

    function _submit(ITradeRouter.AddToPositionIntent memory intent) internal returns (uint256) {
        bytes memory signature = _sign(signerKey, digests.hashAddToPosition(intent));
        vm.prank(executor);
        return router.addToPosition(intent, signature);
    }

    function _submit(ITradeRouter.ReducePositionIntent memory intent) internal returns (uint256) {
        bytes memory signature = _sign(signerKey, digests.hashReducePosition(intent));
        vm.prank(executor);
        return router.reducePosition(intent, signature);
    }

    function _submit(ITradeRouter.UpdateExitLadderIntent memory intent) internal {
        bytes memory signature = _sign(signerKey, digests.hashUpdateExitLadder(intent));
        vm.prank(executor);
        router.updateExitLadder(intent, signature);
    }

    /// @dev The intent is refused with exactly this error, and the agent's nonce stays.
    function _refuse(ITradeRouter.PositionIntent memory intent, bytes memory error) internal {
        bytes memory signature = _sign(signerKey, digests.hashOpenPosition(intent));
        _expectRefusal(abi.encodeCall(router.openPosition, (intent, signature)), error);
    }

    function _refuse(ITradeRouter.AddToPositionIntent memory intent, bytes memory error) internal {
        bytes memory signature = _sign(signerKey, digests.hashAddToPosition(intent));
        _expectRefusal(abi.encodeCall(router.addToPosition, (intent, signature)), error);
    }

    function _refuse(ITradeRouter.ReducePositionIntent memory intent, bytes memory error) internal {
        bytes memory signature = _sign(signerKey, digests.hashReducePosition(intent));
        _expectRefusal(abi.encodeCall(router.reducePosition, (intent, signature)), error);
    }

    function _refuse(ITradeRouter.UpdateExitLadderIntent memory intent, bytes memory error) internal {
        bytes memory signature = _sign(signerKey, digests.hashUpdateExitLadder(intent));
        _expectRefusal(abi.encodeCall(router.updateExitLadder, (intent, signature)), error);
    }

    function _expectRefusal(bytes memory call, bytes memory error) private {
        uint256 nonce = router.nonces(agentId);
        vm.prank(executor);
        (bool success, bytes memory reason) = address(router).call(call);
        assertFalse(success, "accepted");
        assertEq(reason, error, "refused for another reason");
        assertEq(router.nonces(agentId), nonce, "nonce moved");
    }

    function _open(StockToken token, uint256 amount) internal returns (uint256) {
        return _submit(_openIntent(token, amount));
    }

    function _exit(uint256 positionId) internal returns (uint256) {
        vm.prank(keeper);
        return router.executeExit(positionId);
    }
}
