// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {RequestQueue} from "../../src/RequestQueue.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IRequestQueue} from "../../src/interfaces/IRequestQueue.sol";
import {IssuedStock} from "../vault/IssuedStock.sol";

/// @notice Savers who deposit, redeem, request and cancel, an agent that trades, an issuer who pauses, blocks, burns and
/// changes the multiplier, and prices that move, in any order. What shares are worth is computed from what was done, not from what the vault says.
contract SharesInvariants is IssuedStock {
    uint256 private constant SAVERS = 3;
    uint256 private constant MAX_AGE = 15 minutes;
    uint256 private constant VIRTUAL_SHARES = 1e6;

    /// @param gains Actions of a saver after which the others' shares were worth less
    /// @param stuck Deposits, redemptions and cancellations that failed although the vault offered them
    /// @param early Requests that settled at a price observed no later than they were made, or while the vault's worth was uncertain
    /// @param passed Requests that settled before an older one of their kind
    /// @param losses Cancelled requests that did not give back what they took
    struct Failures {
        uint256 gains;
        uint256 stuck;
        uint256 early;
        uint256 passed;
        uint256 losses;
    }

    RequestQueue private queue;
    address[] private savers;
    uint256 private position;
    Failures private failures;
    mapping(bytes32 action => uint256) private done;

    bool private isPaused;
    bool private isTokenPaused;
    mapping(address account => bool) private isBlocked;

    /// @dev No action of a saver makes the others' shares worth less, at the least or at the most that the vault is worth.
    modifier fair() {
        (uint256 low, uint256 high) = _worth();
        uint256 supply = vault.totalSupply() + VIRTUAL_SHARES;
        _;
        (uint256 lowAfter, uint256 highAfter) = _worth();
        uint256 supplyAfter = vault.totalSupply() + VIRTUAL_SHARES;
        if ((lowAfter + 1) * supply < (low + 1) * supplyAfter) ++failures.gains;
        if ((highAfter + 1) * supply < (high + 1) * supplyAfter) ++failures.gains;
    }

    function setUp() public override {
        super.setUp();
        queue = new RequestQueue(address(vault));
        vm.startPrank(admin);
        vault.setLiquidityPolicy(IMandateVault.LiquidityPolicy(uint32(MAX_AGE), 1 hours, 2_000, 1 days, 1 hours));
        vault.setFees(10, 10, address(0));
        vm.stopPrank();
        for (uint256 i; i < SAVERS; ++i) {
            savers.push(makeAddr(string.concat("saver ", vm.toString(i))));
            vm.prank(investor);
            vault.transfer(savers[i], 100_000 * WHOLE_SHARE);
            vm.prank(admin);
            usdc.mint(savers[i], 30_000 * USDC);
            vm.startPrank(savers[i]);
            usdc.approve(address(vault), type(uint256).max);
            usdc.approve(address(queue), type(uint256).max);
            vault.approve(address(queue), type(uint256).max);
            vm.stopPrank();
        }
        position = _open(stock, 20_000 * USDC);
        // What is left belongs to the savers, and a third is invested: they may ask for more than what is idle.
        vm.startPrank(investor);
        vault.redeem(vault.balanceOf(investor), investor, investor);
        vm.stopPrank();
        _hold(80_000 * USDC);

        bytes4[] memory actions = new bytes4[](21);
        actions[0] = this.deposit.selector;
        actions[1] = this.redeem.selector;
        actions[2] = this.requestDeposit.selector;
        actions[3] = this.requestDeposit.selector;
        actions[4] = this.requestRedeem.selector;
        actions[5] = this.requestRedeem.selector;
        actions[6] = this.cancelDeposit.selector;
        actions[7] = this.cancelRedeem.selector;
        actions[8] = this.settle.selector;
        actions[9] = this.settle.selector;
        actions[10] = this.settle.selector;
        actions[11] = this.movePrices.selector;
        actions[12] = this.movePrices.selector;
        actions[13] = this.movePrices.selector;
        actions[14] = this.buy.selector;
        actions[15] = this.sell.selector;
        actions[16] = this.restrict.selector;
        actions[17] = this.burn.selector;
        actions[18] = this.wait_.selector;
        actions[19] = this.weekend.selector;
        actions[20] = this.change.selector;
        targetContract(address(this));
        targetSelector(FuzzSelector({addr: address(this), selectors: actions}));
    }

    // Savers

    function deposit(uint256 saver, uint256 assets) external fair {
        address account = _saver(saver);
        assets = _upTo(assets, usdc.balanceOf(account));
        if (assets == 0 || vault.maxDeposit(account) < assets) return;
        _attempt("deposit", account, address(vault), abi.encodeCall(vault.deposit, (assets, account)));
    }

    function redeem(uint256 saver, uint256 shares) external fair {
        address account = _saver(saver);
        shares = _upTo(shares, vault.maxRedeem(account));
        if (shares == 0) return;
        _attempt("redeem", account, address(vault), abi.encodeCall(vault.redeem, (shares, account, account)));
    }

    function requestDeposit(uint256 saver, uint256 assets) external fair {
        address account = _saver(saver);
        // Now and then a griefer's smallest one.
        assets = assets % 4 == 0 ? queue.MIN_ASSETS() : _upTo(assets, usdc.balanceOf(account));
        if (assets < queue.MIN_ASSETS() || assets > usdc.balanceOf(account)) return;
        bytes memory call = abi.encodeCall(queue.requestDeposit, (assets, account, account));
        _attempt("requestDeposit", account, address(queue), call);
    }

    function requestRedeem(uint256 saver, uint256 shares) external fair {
        address account = _saver(saver);
        uint256 free = vault.balanceOf(account) - vault.lockedShares(account);
        shares = shares % 3 == 0 ? free : _upTo(shares, free);
        if (vault.convertToAssets(shares) < queue.MIN_ASSETS()) return;
        bytes memory call = abi.encodeCall(queue.requestRedeem, (shares, account, account));
        _attempt("requestRedeem", account, address(queue), call);
    }

    function cancelDeposit(uint256 seed) external fair {
        (uint256 next, uint256 end,,) = queue.heads();
        if (next == end) return;
        uint256 id = next + seed % (end - next);
        IRequestQueue.Request memory request = queue.depositRequest(id);
        if (request.amount == 0) return;
        uint256 before = usdc.balanceOf(request.controller);
        bytes memory call = abi.encodeCall(queue.cancelDepositRequest, (id, request.controller));
        _attempt("cancelDeposit", request.controller, address(queue), call);
        if (usdc.balanceOf(request.controller) - before != request.amount) ++failures.losses;
    }

    function cancelRedeem(uint256 seed) external fair {
        (,, uint256 next, uint256 end) = queue.heads();
        if (next == end) return;
        uint256 id = next + seed % (end - next);
        IRequestQueue.Request memory request = queue.redeemRequest(id);
        if (request.amount == 0) return;
        uint256 before = vault.balanceOf(request.controller);
        bytes memory call = abi.encodeCall(queue.cancelRedeemRequest, (id, request.controller));
        _attempt("cancelRedeem", request.controller, address(queue), call);
        if (vault.balanceOf(request.controller) - before != request.amount) ++failures.losses;
    }

    function settle(uint256 deposits, uint256 redemptions) external fair {
        bool isUncertain = _isUncertain();
        (uint256 firstDeposit, uint256[] memory deposited) = _waiting(false);
        (uint256 firstRedeem, uint256[] memory redeemed) = _waiting(true);
        (deposits, redemptions) = queue.settle(deposits % 8, redemptions % 8);
        if (_checkSettled(deposited, firstDeposit, false) != deposits) ++failures.passed;
        if (_checkSettled(redeemed, firstRedeem, true) != redemptions) ++failures.passed;
        if (deposits + redemptions != 0 && isUncertain) ++failures.early;
        if (deposits != 0) ++done["settleDeposits"];
        if (redemptions != 0) ++done["settleRedemptions"];
        (,, uint256 next, uint256 end) = queue.heads();
        if (redemptions != 0 && next != end && queue.redeemRequest(next).amount < redeemed[next - firstRedeem]) {
            ++done["payInPart"];
        }
    }

    // The market, the agent and the issuer

    function movePrices(uint256 bps, uint256 seconds_) external {
        skip(seconds_ % 10 minutes);
        _move(stock, bound(bps, 9_000, 11_000));
        // Now and then only one of the two is observed.
        if (bps % 4 != 0) _move(tsla, bound(bps >> 16, 9_000, 11_000));
        ++done["movePrices"];
    }

    function buy(uint256 amount) external {
        agentId = 1;
        StockToken token = amount % 2 == 0 ? stock : tsla;
        amount = bound(amount, 100 * USDC, 5_000 * USDC);
        uint256 held = positions.openPositionId(1, address(token));
        bytes memory call;
        if (held == 0) {
            call = _signed(token, amount);
        } else {
            bytes memory signature = _sign(signerKey, digests.hashAddToPosition(_addIntent(held, amount)));
            call = abi.encodeCall(router.addToPosition, (_addIntent(held, amount), signature));
        }
        _trade("buy", call);
    }

    function sell(uint256 seed) external {
        uint256 held = positions.openPositionId(1, address(seed % 2 == 0 ? stock : tsla));
        if (held == 0) return;
        uint16 exitBps = uint16(bound(seed, 1, 10_000));
        bytes memory signature = _sign(signerKey, digests.hashReducePosition(_reduceIntent(held, exitBps)));
        _trade("sell", abi.encodeCall(router.reducePosition, (_reduceIntent(held, exitBps), signature)));
    }

    function restrict(uint256 kind, bool on) external {
        kind %= 5;
        if (kind == 0) _pause(isPaused = on);
        else if (kind == 1) _pauseToken(isTokenPaused = on);
        else _block(_path(kind - 2), isBlocked[_path(kind - 2)] = on);
        if (on) ++done["restrict"];
    }

    function burn(uint256 amount) external {
        // A burned token cannot come back, so it is burned seldom and the market pays for a part.
        if (amount % 8 != 0) return;
        uint256 balance = issued.balanceOf(address(vault));
        _burn(address(vault), _upTo(amount, balance / 8));
        ++done["burn"];
    }

    /// @dev Everybody knows of it from now on.
    function change(uint256 multiplier, uint256 seconds_) external {
        _schedule(bound(multiplier, 1e17, 4e18), block.timestamp + seconds_ % 20 minutes);
        ++done["change"];
    }

    function wait_(uint256 seconds_) external {
        skip(seconds_ % 3 hours);
    }

    function weekend(uint256 bps) external {
        skip(60 hours);
        _move(stock, bound(bps, 9_000, 11_000));
        _move(tsla, bound(bps >> 16, 9_000, 11_000));
        ++done["weekend"];
    }

    // What always holds

    /// forge-config: long.invariant.runs = 10000
    /// forge-config: long.invariant.depth = 50
    function invariant_NobodyWhoEntersOrLeavesGainsFromThoseWhoStay() public view {
        assertEq(failures.gains, 0, "the others' shares are worth less");
        assertEq(failures.early, 0, "a request settled at a price that could be known");
        assertEq(failures.passed, 0, "a request passed an older one");
        assertEq(failures.stuck, 0, "what was offered failed");
        assertEq(failures.losses, 0, "a cancelled request gave back less");
        (uint256 low, uint256 high) = vault.totalAssetsRange();
        (uint256 expectedLow, uint256 expectedHigh) = _worth();
        assertEq(low, expectedLow);
        assertEq(high, expectedHigh);

        (, uint256[] memory waiting) = _waiting(false);
        assertEq(usdc.balanceOf(address(queue)), _sum(waiting));
        (, waiting) = _waiting(true);
        assertEq(vault.balanceOf(address(queue)), _sum(waiting));
    }

    /// @dev A way through all actions: what the fuzzer composes can be done at all.
    function test_EveryActionCanSucceed() public {
        this.buy(1_001 * USDC);
        this.requestDeposit(0, 1_001 * USDC);
        this.requestDeposit(1, 1_001 * USDC);
        this.requestDeposit(1, 0);
        this.requestRedeem(1, 1_000 * WHOLE_SHARE);
        this.requestRedeem(2, 1_000 * WHOLE_SHARE + 1);
        this.cancelDeposit(1);
        this.cancelRedeem(1);
        this.weekend(10_001 + (uint256(10_001) << 16));
        skip(1);
        this.settle(7, 7);
        this.deposit(0, 1_000 * USDC);
        this.redeem(2, 1_000 * WHOLE_SHARE);
        for (uint256 i; i < SAVERS; ++i) {
            this.requestRedeem(i, 3);
        }
        this.weekend(10_001 + (uint256(10_001) << 16));
        skip(1);
        this.settle(7, 7);
        this.sell(2);
        this.burn(1e16);
        this.change(4e18, 0);
        this.restrict(0, true);
        this.movePrices(10_001, 0);
        string[16] memory actions = [
            "buy",
            "requestDeposit",
            "requestRedeem",
            "cancelDeposit",
            "cancelRedeem",
            "weekend",
            "settleDeposits",
            "settleRedemptions",
            "deposit",
            "redeem",
            "sell",
            "burn",
            "change",
            "restrict",
            "movePrices",
            "payInPart"
        ];
        for (uint256 i; i < actions.length; ++i) {
            assertGt(done[bytes32(bytes(actions[i]))], 0, actions[i]);
        }
        invariant_NobodyWhoEntersOrLeavesGainsFromThoseWhoStay();
    }

    /// @dev What the vault is worth at least and at most, from what the test did to prices, pauses, blocks and balances.
    function _worth() private view returns (uint256 low, uint256 high) {
        low = high = vault.idleAssets();
        uint256 ledger = vault.tokenLedger(address(issued));
        bool isStuck = isPaused || isTokenPaused || isBlocked[_path(0)] || isBlocked[_path(1)] || isBlocked[_path(2)];
        uint256 balance = issued.balanceOf(address(vault));
        uint256 sellable = isStuck ? 0 : balance < ledger ? balance : ledger;
        (uint256 price, uint64 observedAt,) = oracle.peekPrice(address(issued));
        high += ledger * price / 1e20;
        if (block.timestamp - observedAt <= MAX_AGE && _isSettled()) low += sellable * price / 1e20;
        ledger = vault.tokenLedger(address(tsla));
        (price, observedAt,) = oracle.peekPrice(address(tsla));
        high += ledger * price / 1e10;
        if (block.timestamp - observedAt <= MAX_AGE) low += ledger * price / 1e10;
    }

    /// @dev How many of the requests have been paid since, in full or in part; counts those that broke a rule.
    function _checkSettled(uint256[] memory before, uint256 first, bool isRedeem) private returns (uint256 settled) {
        bool isHeld;
        for (uint256 i; i < before.length; ++i) {
            if (before[i] == 0) continue;
            IRequestQueue.Request memory request =
                isRedeem ? queue.redeemRequest(first + i) : queue.depositRequest(first + i);
            if (request.amount == before[i]) {
                isHeld = true;
                continue;
            }
            ++settled;
            if (isHeld) ++failures.passed;
            isHeld = request.amount != 0;
            if (!_isNewTo(stock, request.madeAt) || !_isNewTo(tsla, request.madeAt)) ++failures.early;
        }
    }

    /// @dev A token that is not held, or stale, prices nobody; any other was observed after the request.
    function _isNewTo(StockToken token, uint256 madeAt) private view returns (bool) {
        (, uint64 observedAt,) = oracle.peekPrice(address(token));
        bool isPriced = vault.tokenLedger(address(token)) != 0 && block.timestamp - observedAt <= MAX_AGE;
        if (address(token) == address(issued) && !_isSettled()) isPriced = false;
        return !isPriced || observedAt > madeAt;
    }

    /// @dev Whether the price of the issued token was observed after its multiplier last changed.
    function _isSettled() private view returns (bool) {
        (, uint64 observedAt,) = oracle.peekPrice(address(issued));
        return block.timestamp < issued.effectiveAt() || observedAt >= issued.effectiveAt();
    }

    function _isUncertain() private view returns (bool) {
        (uint256 low, uint256 high) = _worth();
        return (high - low) * 100 > high;
    }

    function _waiting(bool isRedeem) private view returns (uint256 first, uint256[] memory amounts) {
        (uint256 nextDeposit, uint256 newDeposit, uint256 nextRedeem, uint256 newRedeem) = queue.heads();
        first = isRedeem ? nextRedeem : nextDeposit;
        amounts = new uint256[]((isRedeem ? newRedeem : newDeposit) - first);
        for (uint256 i; i < amounts.length; ++i) {
            amounts[i] = (isRedeem ? queue.redeemRequest(first + i) : queue.depositRequest(first + i)).amount;
        }
    }

    function _sum(uint256[] memory amounts) private pure returns (uint256 sum) {
        for (uint256 i; i < amounts.length; ++i) {
            sum += amounts[i];
        }
    }

    function _attempt(bytes32 action, address account, address target, bytes memory call) private {
        vm.prank(account);
        (bool success,) = target.call(call);
        if (success) ++done[action];
        else ++failures.stuck;
    }

    function _trade(bytes32 action, bytes memory call) private {
        vm.prank(executor);
        (bool success,) = address(router).call(call);
        if (success) ++done[action];
    }

    function _signed(StockToken token, uint256 amount) private view returns (bytes memory) {
        bytes memory signature = _sign(signerKey, digests.hashOpenPosition(_openIntent(token, amount)));
        return abi.encodeCall(router.openPosition, (_openIntent(token, amount), signature));
    }

    function _move(StockToken token, uint256 bps) private {
        (uint256 price,,) = oracle.peekPrice(address(token));
        price = bound(price * bps / 10_000, 10 * USD, 10_000 * USD);
        _setOraclePrice(token, price);
        // The pool of a token that is paused or blocked stays where it is.
        try market.moveTo(address(token), price) {} catch {}
    }

    function _saver(uint256 seed) private view returns (address) {
        return savers[seed % SAVERS];
    }

    function _path(uint256 index) private view returns (address) {
        return index == 0 ? address(vault) : index == 1 ? address(adapter) : adapter.poolOf(address(issued));
    }

    function _upTo(uint256 seed, uint256 max) private pure returns (uint256) {
        return max == 0 ? 0 : bound(seed, 1, max);
    }
}
