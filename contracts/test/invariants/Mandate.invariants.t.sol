// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {OwnerTest} from "../owner/OwnerTest.sol";

/// @notice An owner with one agent on real capital and one on paper, who signs mandates, stops and new keys, and agents that
/// sign whatever they like, in any order. The test keeps its own books of what was signed and bought.
contract MandateInvariants is OwnerTest {
    uint256 private constant AGENTS = 2;

    /// @dev What the owner signed last, and what the agent bought since it was registered.
    struct Book {
        IOwnerControls.Mandate mandate;
        uint256 closingSince;
        uint256 day;
        uint256 boughtToday;
        uint256 boughtYesterday;
        uint256 key;
    }

    /// @param beyondMandate Buys that the mandate did not allow
    /// @param loosened Ladders of a stopped agent that protect less than before
    /// @param oldKeys Intents that a replaced key signed and the router accepted
    /// @param impersonations Messages of the owner that the agent's key signed, or its own calls, that were accepted
    /// @param voidedStops Stops and closes of the owner that did not take effect in the block that mined them
    /// @param repeatedStops Stops and closes that took effect twice
    /// @param blockedReduces Reductions that were refused with a fresh price and the pool at that price; likewise the rest
    struct Failures {
        uint256 beyondMandate;
        uint256 loosened;
        uint256 oldKeys;
        uint256 impersonations;
        uint256 blockedReduces;
        uint256 blockedExits;
        uint256 blockedCloses;
        uint256 blockedTightenings;
        uint256 voidedStops;
        uint256 repeatedStops;
    }

    uint256[] private team;
    mapping(uint256 agent => Book) private books;
    mapping(bytes32 action => uint256) private done;
    Failures private failures;

    function setUp() public override {
        super.setUp();
        team.push(agentId);
        vm.prank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, uint8(IVaultTrackRegistry.CapitalMode.Simulated));
        team.push(_register(vm.addr(signerKey + 1)));
        for (uint256 i; i < AGENTS; ++i) {
            books[team[i]].key = signerKey + i;
            books[team[i]].day = _today();
        }
        _useDefaultLimits();
        skip(5 minutes);
        _repeatPrices();

        bytes4[] memory actions = new bytes4[](29);
        for (uint256 i; i < 6; ++i) {
            actions[i] = this.open.selector;
        }
        actions[6] = this.add.selector;
        actions[7] = this.add.selector;
        actions[8] = this.reduce.selector;
        actions[9] = this.updateLadder.selector;
        actions[10] = this.updateLadder.selector;
        actions[11] = this.executeExit.selector;
        actions[12] = this.movePrice.selector;
        actions[13] = this.wait.selector;
        actions[14] = this.setMandate.selector;
        actions[15] = this.setMandate.selector;
        actions[16] = this.setMandate.selector;
        actions[17] = this.stopBuying.selector;
        actions[18] = this.closeAll.selector;
        actions[19] = this.setSigner.selector;
        actions[20] = this.mustReduce.selector;
        actions[21] = this.mustExit.selector;
        actions[22] = this.mustClose.selector;
        actions[23] = this.mustTighten.selector;
        actions[24] = this.loosen.selector;
        actions[25] = this.loosen.selector;
        actions[26] = this.impersonate.selector;
        actions[27] = this.mustStop.selector;
        actions[28] = this.mustStop.selector;
        targetContract(address(this));
        targetSelector(FuzzSelector({addr: address(this), selectors: actions}));
    }

    // What agents sign

    function open(uint256 agent, uint256 token, uint256 amount, uint256 ladder) external {
        _as(agent);
        ITradeRouter.PositionIntent memory intent = _openIntent(_stock(token), bound(amount, 1, 6_000 * USDC));
        intent.exits = _someLadder(ladder);
        bytes memory call = abi.encodeCall(router.openPosition, (intent, _sign(signerKey, _digest(intent))));
        if (_try("open", call)) _book(intent.token, intent.usdcAmount);
    }

    function add(uint256 position, uint256 amount) external {
        uint256 id = _position(position);
        if (id == 0) return;
        ITradeRouter.AddToPositionIntent memory intent = _addIntent(id, bound(amount, 1, 6_000 * USDC));
        bytes memory call = abi.encodeCall(router.addToPosition, (intent, _sign(signerKey, _digest(intent))));
        if (_try("add", call)) _book(positions.getPosition(id).token, intent.usdcAmount);
    }

    function reduce(uint256 position, uint16 exitBps) external {
        uint256 id = _position(position);
        if (id == 0) return;
        ITradeRouter.ReducePositionIntent memory intent = _reduceIntent(id, uint16(bound(exitBps, 1, 10_000)));
        _try("reduce", abi.encodeCall(router.reducePosition, (intent, _sign(signerKey, _digest(intent)))));
    }

    function updateLadder(uint256 position, uint256 ladder) external {
        uint256 id = _position(position);
        if (id == 0) return;
        IPositionManager.ExitRule[] memory previous = _pendingStops(id);
        if (!_update("updateLadder", id, _someLadder(ladder))) return;
        if (books[agentId].mandate.mode == STOPPED && _isLooser(_pendingStops(id), previous)) ++failures.loosened;
    }

    /// @dev The owner stops the agent if it has not; the thief takes the protection off, with the pool at the price.
    function loosen(uint256 position, uint256 ladder) external {
        uint256 id = _settled(position);
        if (id == 0) return;
        IOwnerControls.Mandate memory mandate = books[agentId].mandate;
        mandate.mode = STOPPED;
        _setMandate(mandate);
        books[agentId].mandate = mandate;
        IPositionManager.ExitRule[] memory previous = _pendingStops(id);
        _update("loosen", id, ladder % 2 == 0 ? _ladder(_stop(-1_999, 10_000)) : _someLadder(ladder >> 1));
        if (_isLooser(_pendingStops(id), previous)) ++failures.loosened;
    }

    /// @dev Signs a message in the owner's place, and calls the registry as the owner would.
    function impersonate(uint256 agent, uint256 kind) external {
        _as(agent);
        Message message = Message(kind % (uint256(type(Message).max) + 1));
        bytes memory call = _callOf(message, _nonce(), _soon(), signerKey);
        vm.prank(relayer);
        (bool success,) = address(controls).call(call);
        vm.startPrank(vm.addr(signerKey));
        (bool isKeySet,) = address(agents).call(abi.encodeCall(agents.setAgentSigner, (agentId, vm.addr(newSignerKey))));
        (bool isStateSet,) = address(agents).call(abi.encodeCall(agents.setMandateState, (agentId, 0)));
        vm.stopPrank();
        if (success || isKeySet || isStateSet) ++failures.impersonations;
        ++done["impersonate"];
    }

    // What the market and keepers do

    function executeExit(uint256 position) external {
        uint256 id = _position(position);
        if (id != 0) _try("executeExit", abi.encodeCall(router.executeExit, (id)));
    }

    function movePrice(uint256 token, uint256 bps) external {
        StockToken moved = _stock(token);
        (uint256 price,,) = oracle.peekPrice(address(moved));
        _setPrice(moved, bound(price * bound(bps, 9_000, 11_200) / 10_000, USD, 100_000 * USD));
        ++done["movePrice"];
    }

    function wait(uint256 time) external {
        skip(bound(time, 1, 14 hours));
        _repeatPrices();
        ++done["wait"];
    }

    // What the owner signs

    function setMandate(uint256 agent, uint256 seed, uint256 maxTrade, uint256 maxTurnover, uint256 maxExposure)
        external
    {
        _as(agent);
        IOwnerControls.Mandate memory mandate;
        mandate.mode = seed % 3 == 0 ? uint8(bound(seed >> 8, 0, 2)) : TRADE;
        mandate.maxTradeUsdc = maxTrade % 3 == 0 ? 0 : bound(maxTrade, 1, 6_000 * USDC);
        mandate.maxDailyTurnoverUsdc = maxTurnover % 3 == 0 ? 0 : bound(maxTurnover, 1, 20_000 * USDC);
        mandate.maxExposureUsdc = maxExposure % 3 == 0 ? 0 : bound(maxExposure, 1, 12_000 * USDC);
        if (seed % 4 == 1) {
            mandate.allowedTokens = new address[](1);
            mandate.allowedTokens[0] = address(_stock(seed >> 16));
        }
        if (seed % 5 == 0) mandate.validUntil = block.timestamp + (seed >> 24) % 1 days;
        _setMandate(mandate);
        books[agentId].mandate = mandate;
        if (mandate.mode == TRADE) books[agentId].closingSince = 0;
        ++done["setMandate"];
    }

    function stopBuying(uint256 agents_) external {
        uint256[] memory ids = _someAgents(agents_);
        _relay(_stopCall(ids, ownerKey));
        for (uint256 i; i < ids.length; ++i) {
            _noteStop(ids[i]);
        }
        ++done["stopBuying"];
    }

    function closeAll(uint256 agents_) external {
        uint256[] memory ids = _someAgents(agents_);
        _relay(_closeCall(ids, ownerKey));
        for (uint256 i; i < ids.length; ++i) {
            _noteStop(ids[i]);
            if (books[ids[i]].closingSince == 0) books[ids[i]].closingSince = block.timestamp;
        }
        ++done["closeAll"];
    }

    /// @dev Before the owner's stop is mined, somebody relays up to three older messages, one with its nonce and two with the next
    /// ones, and up to three other stops.
    function mustStop(uint256 agents_, uint256 seed) external {
        uint256[] memory ids = _someAgents(agents_);
        uint256 nonce = _nonce();
        Message kind = seed % 2 == 0 ? Message.CloseAll : Message.StopBuying;
        bytes memory stop = kind == Message.CloseAll ? _closeCall(ids, ownerKey) : _stopCall(ids, ownerKey);
        agentId = team[seed % AGENTS];
        for (uint256 i; i < (seed >> 8) % 4; ++i) {
            _relay(_mandateCall(_mandate(TRADE), nonce + i, _soon(), ownerKey));
            (books[agentId].mandate, books[agentId].closingSince) = (_mandate(TRADE), 0);
        }
        for (uint256 i; i < (seed >> 16) % 4; ++i) {
            _relay(_callOf(Message.StopBuying, _nonce(), _soon() + 1 + i, ownerKey));
            _noteStop(agentId);
        }
        vm.prank(relayer);
        (bool success,) = address(controls).call(stop);
        if (!success) ++failures.voidedStops;
        for (uint256 i; i < ids.length; ++i) {
            IOwnerControls.MandateInForce memory inForce = controls.mandateOf(ids[i]);
            if (inForce.mode == TRADE || (kind == Message.CloseAll && inForce.closingSince == 0)) {
                ++failures.voidedStops;
            }
            _noteStop(ids[i]);
            if (kind == Message.CloseAll && books[ids[i]].closingSince == 0) {
                books[ids[i]].closingSince = block.timestamp;
            }
        }
        vm.prank(relayer);
        (success,) = address(controls).call(stop);
        if (success) ++failures.repeatedStops;
        ++done["mustStop"];
    }

    /// @dev The intent that the former key signs is refused, and would have been valid a moment before.
    function setSigner(uint256 agent, uint256 seed) external {
        _as(agent);
        uint256 former = signerKey;
        books[agentId].key = 1 + seed % 1e30;
        _setSigner(books[agentId].key);
        ITradeRouter.PositionIntent memory intent = _openIntent(_stock(seed), 100 * USDC);
        bytes memory call = abi.encodeCall(router.openPosition, (intent, _sign(former, _digest(intent))));
        vm.prank(executor);
        (bool success,) = address(router).call(call);
        if (success && former != books[agentId].key) ++failures.oldKeys;
        ++done["setSigner"];
    }

    // What no mandate may stop: with a fresh price and the pool at it

    function mustReduce(uint256 position) external {
        uint256 id = _settled(position);
        if (id == 0) return;
        ITradeRouter.ReducePositionIntent memory intent = _reduceIntent(id, 10_000);
        if (!_try("mustReduce", abi.encodeCall(router.reducePosition, (intent, _sign(signerKey, _digest(intent)))))) {
            ++failures.blockedReduces;
        }
    }

    function mustExit(uint256 position) external {
        uint256 id = _settled(position);
        if (id == 0 || !lens.isTriggerMet(id)) return;
        uint256 held = positions.getPosition(id).tokenAmount;
        bool success = _try("mustExit", abi.encodeCall(router.executeExit, (id)));
        if (!success || positions.getPosition(id).tokenAmount == held) ++failures.blockedExits;
    }

    function mustClose(uint256 position) external {
        uint256 id = _settled(position);
        if (id == 0) return;
        if (books[agentId].closingSince == 0) this.closeAll(agentId == team[0] ? 0 : 1);
        bool success = _try("mustClose", abi.encodeCall(router.executeExit, (id)));
        if (!success || positions.getPosition(id).tokenAmount != 0) ++failures.blockedCloses;
    }

    /// @dev Everything goes at a price at which the first stop was due or earlier.
    function mustTighten(uint256 position, uint256 seed) external {
        uint256 id = _settled(position);
        if (id == 0 || positions.dueExitOf(id).tokensLeft != 0) return;
        int256 pnl = lens.positionPnlBps(id);
        int256 first = _pendingStops(id)[0].triggerBps;
        int256 highest = pnl > 0 ? int256(-1) : pnl - 1;
        if (highest < first) return;
        int256 trigger = first + int256(seed % uint256(highest - first + 1));
        if (!_update("mustTighten", id, _ladder(_stop(trigger, 10_000)))) ++failures.blockedTightenings;
    }

    // What always holds. Invariants of one contract run the same sequences, so 262,144 different calls take 2,048 runs each.

    /// forge-config: long.invariant.runs = 2048
    function invariant_NoSequenceOfSignedIntentsPassesTheMandate() public view {
        assertEq(failures.beyondMandate, 0, "a buy beyond the mandate");
        assertEq(failures.loosened, 0, "a stopped agent loosened a ladder");
        assertEq(failures.oldKeys, 0, "a former key traded");
    }

    /// forge-config: long.invariant.runs = 2048
    function invariant_NoMandateBlocksAReductionAnExitOrATighterLadder() public view {
        assertEq(failures.blockedReduces, 0, "a reduction was blocked");
        assertEq(failures.blockedExits, 0, "an exit was blocked");
        assertEq(failures.blockedCloses, 0, "a close all was blocked");
        assertEq(failures.blockedTightenings, 0, "a tighter ladder was blocked");
    }

    function invariant_AnOwnersStopTakesEffectInTheBlockThatMinesIt() public view {
        assertEq(failures.voidedStops, 0, "a stop was voided");
        assertEq(failures.repeatedStops, 0, "a stop worked twice");
    }

    function invariant_OnlyTheOwnersMessagesChangeAMandate() public view {
        assertEq(failures.impersonations, 0, "somebody else acted as the owner");
        for (uint256 i; i < AGENTS; ++i) {
            IOwnerControls.MandateInForce memory inForce = controls.mandateOf(team[i]);
            Book storage book = books[team[i]];
            assertEq(inForce.mode, book.mandate.mode);
            assertEq(inForce.validUntil, book.mandate.validUntil);
            assertEq(inForce.closingSince, book.closingSince);
            assertEq(inForce.maxExposureUsdc, book.mandate.maxExposureUsdc);
            assertEq(agents.ownerOf(team[i]), owner);
            assertEq(agents.signerOf(team[i]), vm.addr(book.key));
        }
    }

    /// @dev A way through all actions: what the fuzzer composes can be done at all.
    function test_EveryActionCanSucceed() public {
        this.open(0, 0, 5_000 * USDC, 0);
        this.open(1, 1, 5_000 * USDC, 0);
        this.add(0, 1_000 * USDC);
        this.updateLadder(0, 1);
        this.reduce(1, 5_000);
        this.wait(600);
        this.mustTighten(0, 3);
        this.setMandate(0, 1, 1, 1, 1);
        this.stopBuying(2);
        this.setSigner(0, 5);
        this.movePrice(0, 9_000);
        this.executeExit(0);
        this.movePrice(1, 9_000);
        this.mustExit(0);
        this.mustExit(1);
        this.setMandate(0, 2, 0, 0, 0);
        this.setMandate(1, 2, 0, 0, 0);
        this.open(0, 1, 5_000 * USDC, 0);
        this.open(1, 1, 5_000 * USDC, 0);
        this.mustReduce(0);
        this.loosen(0, 1);
        this.impersonate(0, 0);
        this.mustClose(0);
        this.closeAll(2);
        this.mustStop(2, 0x020301);
        bytes32[18] memory names = [
            bytes32("open"),
            "add",
            "reduce",
            "updateLadder",
            "executeExit",
            "movePrice",
            "wait",
            "setMandate",
            "stopBuying",
            "closeAll",
            "setSigner",
            "mustReduce",
            "mustExit",
            "mustClose",
            "mustTighten",
            "loosen",
            "impersonate",
            "mustStop"
        ];
        for (uint256 i; i < names.length; ++i) {
            assertGt(done[names[i]], 0, string(abi.encodePacked(names[i])));
        }
    }

    /// @dev Books a buy that went through, and whether the mandate allowed it.
    function _book(address token, uint256 amount) private {
        Book storage book = books[agentId];
        if (book.day != _today()) {
            book.boughtYesterday = book.day + 1 == _today() ? book.boughtToday : 0;
            (book.day, book.boughtToday) = (_today(), 0);
        }
        book.boughtToday += amount;

        IOwnerControls.Mandate memory mandate = book.mandate;
        uint256 turnover = book.boughtToday + book.boughtYesterday * (DAY - block.timestamp % DAY) / DAY;
        bool isAllowed = mandate.mode == TRADE && book.closingSince == 0;
        if (mandate.validUntil != 0 && block.timestamp > mandate.validUntil) isAllowed = false;
        if (mandate.maxTradeUsdc != 0 && amount > mandate.maxTradeUsdc) isAllowed = false;
        if (mandate.maxDailyTurnoverUsdc != 0 && turnover > mandate.maxDailyTurnoverUsdc) isAllowed = false;
        if (mandate.maxExposureUsdc != 0 && _exposure() > mandate.maxExposureUsdc) isAllowed = false;
        if (mandate.allowedTokens.length != 0 && mandate.allowedTokens[0] != token) isAllowed = false;
        if (!isAllowed) ++failures.beyondMandate;
    }

    function _exposure() private view returns (uint256 cost) {
        uint256[] memory ids = positions.getOpenPositionIds(agentId);
        for (uint256 i; i < ids.length; ++i) {
            cost += positions.getPosition(ids[i]).usdcCostBasis;
        }
    }

    function _noteStop(uint256 agent) private {
        if (books[agent].mandate.mode == TRADE) books[agent].mandate.mode = REDUCE_ONLY;
    }

    function _try(bytes32 action, bytes memory call) private returns (bool success) {
        vm.prank(executor);
        (success,) = address(router).call(call);
        if (success) ++done[action];
    }

    function _update(bytes32 action, uint256 id, IPositionManager.ExitRule[] memory rules) private returns (bool) {
        ITradeRouter.UpdateExitLadderIntent memory intent = _updateIntent(id, rules);
        bytes memory signature = _sign(signerKey, digests.hashUpdateExitLadder(intent));
        return _try(action, abi.encodeCall(router.updateExitLadder, (intent, signature)));
    }

    function _as(uint256 agent) private {
        agentId = team[agent % AGENTS];
        signerKey = books[agentId].key;
    }

    /// @dev An open position, whose agent acts from now on; 0 when there is none.
    function _position(uint256 seed) private returns (uint256) {
        for (uint256 i; i < AGENTS; ++i) {
            _as(seed % AGENTS + i);
            uint256[] memory ids = positions.getOpenPositionIds(agentId);
            if (ids.length != 0) return ids[(seed >> 8) % ids.length];
        }
        return 0;
    }

    /// @dev Brings pools and prices together, long enough for the pools' averages to follow.
    function _settled(uint256 seed) private returns (uint256 id) {
        id = _position(seed);
        _repeatPrices();
        skip(5 minutes);
        _repeatPrices();
    }

    function _repeatPrices() private {
        (uint256 price,,) = oracle.peekPrice(address(nvda));
        _setOraclePrice(nvda, price);
        market.moveTo(address(nvda), price);
        (price,,) = oracle.peekPrice(address(tsla));
        _setOraclePrice(tsla, price);
        market.moveTo(address(tsla), price);
    }

    function _someAgents(uint256 seed) private view returns (uint256[] memory ids) {
        if (seed % 3 != 2) return _only(team[seed % 3]);
        return team;
    }

    function _stock(uint256 seed) private view returns (StockToken) {
        return seed % 2 == 0 ? nvda : tsla;
    }

    function _pendingStops(uint256 id) private view returns (IPositionManager.ExitRule[] memory stops) {
        IPositionManager.ExitRule[] memory rules = positions.getExitRules(id);
        stops = new IPositionManager.ExitRule[](rules.length);
        uint256 count;
        for (uint256 i = positions.getPosition(id).nextRuleIndex; i < rules.length; ++i) {
            if (rules[i].triggerBps < 0) stops[count++] = rules[i];
        }
        assembly ("memory-safe") {
            mstore(stops, count)
        }
    }

    function _isLooser(IPositionManager.ExitRule[] memory stops, IPositionManager.ExitRule[] memory previous)
        private
        pure
        returns (bool)
    {
        for (uint256 i; i < previous.length; ++i) {
            if (_left(stops, previous[i].triggerBps) > _left(previous, previous[i].triggerBps)) return true;
        }
        return false;
    }

    function _left(IPositionManager.ExitRule[] memory stops, int256 price) private pure returns (uint256 left) {
        left = 1e20;
        for (uint256 i; i < stops.length; ++i) {
            if (price <= stops[i].triggerBps) left -= left * stops[i].exitBps / 10_000;
        }
    }

    function _someLadder(uint256 seed) private pure returns (IPositionManager.ExitRule[] memory) {
        int256 near = int256(100 + seed % 1_000);
        uint16 share = uint16(1 + (seed >> 16) % 10_000);
        if (seed % 3 == 0) return _threeRules();
        if (seed % 3 == 1) return _ladder(_take(near, share), _stop(-near, 10_000));
        return _ladder(_stop(-near, share), _take(near, share), _stop(-near - 700, 10_000));
    }
}
