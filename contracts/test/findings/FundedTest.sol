// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IPromotionCriteria} from "../../src/interfaces/IPromotionCriteria.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {OwnerTest} from "../owner/OwnerTest.sol";

/// @notice A vault that starts agents on paper and gives them 50,000 USDC once their owner has locked 14 % of it
abstract contract FundedTest is OwnerTest {
    uint256 internal constant FUNDED_CAP = 50_000 * USDC;
    uint16 internal constant FIRST_LOSS_BPS = 1_400;
    uint256 internal constant REQUIRED = FUNDED_CAP * FIRST_LOSS_BPS / 10_000;

    IPromotionCriteria internal criteria;
    StockToken internal thin;
    uint256 internal burnedUsdc;

    function setUp() public virtual override {
        super.setUp();
        criteria = IPromotionCriteria(agents.promotionCriteria());
        thin = _token("THIN", 100 * USD, 10_000_000 * USDC);
        IVaultTrackRegistry.VaultTrackConfig memory config = _policy();
        (config.minTrades, config.evaluationPeriod, config.promotionScore) = (2, 1 days, 40);
        config.maxDailyTurnoverBps = 10_000;
        _setPolicy(config);
        config.trackId = 1;
        config.initialAllocation = FUNDED_CAP;
        config.maxAllocation = 2 * FUNDED_CAP;
        config.maxTradeSizeBps = 10_000;
        config.maxStopLossBps = FIRST_LOSS_BPS - 300;
        _setPolicy(config);
        vm.startPrank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, 0);
        tradePolicy.setLimits(address(vault), 0, _defaultLimits());
        tradePolicy.setLimits(address(vault), 1, _defaultLimits());
        vm.stopPrank();
        _setTerms(IVaultTrackRegistry.RiskTerms(FIRST_LOSS_BPS, 0));
        agentId = _register(vm.addr(signerKey));
        skip(10 minutes);
        _quote(100 * USD);
        skip(1);
    }

    /// @dev The promotion of an agent that luck has favoured on paper.
    function _forcePromotion() internal {
        vm.mockCall(address(criteria), abi.encodeWithSelector(criteria.check.selector), "");
        agents.promoteAgent(agentId, 1);
        vm.clearMockedCalls();
    }

    /// @dev Buys after the owner has pushed the pool up to the policy's bound.
    function _tryToOpen(StockToken token, uint256 amount, uint256 price) internal returns (bool success) {
        market.moveTo(address(token), price * 10_045 / 10_000);
        ITradeRouter.PositionIntent memory intent = _openIntent(token, amount);
        bytes memory signature = _sign(signerKey, digests.hashOpenPosition(intent));
        vm.prank(executor);
        (success,) = address(router).call(abi.encodeCall(router.openPosition, (intent, signature)));
        market.moveTo(address(token), price);
        skip(10 minutes);
        _quote(100 * USD);
        _setOraclePrice(token, price);
        skip(1);
    }

    /// @dev Sells after the owner has pushed the pool down to the policy's bound.
    function _sellBelow(uint256 id, uint256 price) internal {
        market.moveTo(address(thin), price);
        skip(10 minutes);
        _quote(100 * USD);
        _setOraclePrice(thin, price);
        uint256 locked = vault.firstLossShares(owner);
        market.moveTo(address(thin), price * 9_955 / 10_000);
        uint256 worth = vault.convertToAssets(1e24);
        _submit(_reduceIntent(id, 10_000));
        burnedUsdc += (locked - vault.firstLossShares(owner)) * worth / 1e24;
        market.moveTo(address(thin), price);
    }

    function _proveOnPaper() internal {
        uint256 id = _open(nvda, 19_000 * USDC);
        _settle(110 * USD);
        _submit(_reduceIntent(id, 10_000));
        _settle(100 * USD);
        skip(1 days);
        _quote(100 * USD);
    }

    /// @dev An agent on real capital whose owner has locked a little more than required.
    function _fund(uint256 required) internal {
        _depositFor(owner, 2 * required);
        _lock(vault.convertToShares(required * 101 / 100));
        _proveOnPaper();
        agents.promoteAgent(agentId, 1);
    }

    function _lock(uint256 shares) internal {
        _relay(_lockCall(shares, ownerKey));
    }

    function _lockCall(uint256 shares, uint256 key) internal view returns (bytes memory) {
        bytes memory message = abi.encode(
            keccak256("LockFirstLoss(uint256 agentId,uint256 shares,uint256 nonce,uint256 deadline)"),
            agentId,
            shares,
            _nonce(),
            _soon()
        );
        return abi.encodeCall(controls.lockFirstLoss, (agentId, shares, _nonce(), _soon(), _signMessage(key, message)));
    }

    function _lockedValue() internal view returns (uint256 value) {
        (,, value,) = allocations.firstLossOf(agentId);
    }

    function _depositFor(address receiver, uint256 amount) internal {
        vm.prank(admin);
        usdc.mint(receiver, amount);
        vm.startPrank(receiver);
        usdc.approve(address(vault), amount);
        vault.deposit(amount, receiver);
        vm.stopPrank();
    }

    function _setTerms(IVaultTrackRegistry.RiskTerms memory terms) internal {
        vm.prank(admin);
        tracks.setVaultTrackRiskTerms(address(vault), 1, terms);
    }

    /// @dev Fresh prices; NVDA's at `price`.
    function _quote(uint256 price) internal {
        _setOraclePrice(nvda, price);
        _setOraclePrice(tsla, TSLA_PRICE);
        _setOraclePrice(thin, 100 * USD);
    }

    /// @dev NVDA moves, and its pool's average has followed.
    function _settle(uint256 price) internal {
        _setPrice(nvda, price);
        skip(10 minutes);
        _quote(price);
        skip(1);
    }
}
