// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {Multicall3} from "../../src/embedded/Multicall3.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";

contract Multicall3Test is Test {
    error Refused(uint256 value);

    address private constant CANONICAL = 0xcA11bde05977b3631167028862bE2a173976CA11;

    Multicall3 private multicall = Multicall3(CANONICAL);
    StockToken private token = new StockToken("NVIDIA", "NVDA", 18, address(this));

    /// The code is placed, not deployed, as on the embedded chain.
    function setUp() public {
        vm.etch(CANONICAL, type(Multicall3).runtimeCode);
    }

    receive() external payable {}

    function refuse(uint256 value) external pure {
        revert Refused(value);
    }

    function test_HasTheSelectorThatClientsCall() public pure {
        assertEq(Multicall3.aggregate3.selector, bytes4(0x82ad56cb));
        assertEq(Multicall3.aggregate3Value.selector, bytes4(0x174dea71));
        assertEq(Multicall3.tryAggregate.selector, bytes4(0xbce38bd7));
    }

    function test_AnswersEachCallInOrderAndKeepsAFailureApart() public {
        Multicall3.Call3[] memory calls = new Multicall3.Call3[](3);
        calls[0] = Multicall3.Call3(address(token), false, abi.encodeCall(token.symbol, ()));
        calls[1] = Multicall3.Call3(address(this), true, abi.encodeCall(this.refuse, (7)));
        calls[2] = Multicall3.Call3(address(token), true, abi.encodeCall(token.decimals, ()));

        Multicall3.Result[] memory results = multicall.aggregate3(calls);
        assertTrue(results[0].success);
        assertEq(abi.decode(results[0].returnData, (string)), "NVDA");
        assertFalse(results[1].success);
        assertEq(results[1].returnData, abi.encodeWithSelector(Refused.selector, 7));
        assertTrue(results[2].success);
        assertEq(abi.decode(results[2].returnData, (uint8)), 18);
    }

    function test_NamesTheCallThatMustNotFail() public {
        Multicall3.Call3[] memory calls = new Multicall3.Call3[](2);
        calls[0] = Multicall3.Call3(address(token), false, abi.encodeCall(token.symbol, ()));
        calls[1] = Multicall3.Call3(address(this), false, abi.encodeCall(this.refuse, (7)));

        vm.expectRevert(
            abi.encodeWithSelector(Multicall3.CallFailed.selector, 1, abi.encodeWithSelector(Refused.selector, 7))
        );
        multicall.aggregate3(calls);
    }

    function test_TriesCallsThatMayAndMayNotFail() public {
        Multicall3.Call[] memory calls = new Multicall3.Call[](2);
        calls[0] = Multicall3.Call(address(token), abi.encodeCall(token.symbol, ()));
        calls[1] = Multicall3.Call(address(this), abi.encodeCall(this.refuse, (7)));

        Multicall3.Result[] memory results = multicall.tryAggregate(false, calls);
        assertEq(abi.decode(results[0].returnData, (string)), "NVDA");
        assertFalse(results[1].success);

        vm.expectRevert(
            abi.encodeWithSelector(Multicall3.CallFailed.selector, 1, abi.encodeWithSelector(Refused.selector, 7))
        );
        multicall.tryAggregate(true, calls);
    }

    function test_SendsEachCallItsValue() public {
        vm.deal(address(this), 10);
        Multicall3.Call3Value[] memory calls = new Multicall3.Call3Value[](2);
        calls[0] = Multicall3.Call3Value(makeAddr("one"), false, 3, "");
        calls[1] = Multicall3.Call3Value(makeAddr("two"), false, 4, "");
        multicall.aggregate3Value{value: 7}(calls);
        assertEq(makeAddr("one").balance, 3);
        assertEq(makeAddr("two").balance, 4);

        vm.expectRevert(abi.encodeWithSelector(Multicall3.ValueMismatch.selector, 7, 3));
        multicall.aggregate3Value{value: 3}(calls);

        calls[1] = Multicall3.Call3Value(address(this), false, 0, abi.encodeCall(this.refuse, (9)));
        vm.expectRevert(
            abi.encodeWithSelector(Multicall3.CallFailed.selector, 1, abi.encodeWithSelector(Refused.selector, 9))
        );
        multicall.aggregate3Value{value: 3}(calls);

        calls[1].allowFailure = true;
        Multicall3.Result[] memory results = multicall.aggregate3Value{value: 3}(calls);
        assertTrue(results[0].success);
        assertFalse(results[1].success);
    }

    function test_TellsTheBlockItRunsIn() public {
        vm.roll(100);
        vm.warp(1_000_000);
        vm.fee(12);
        vm.chainId(421614);
        vm.coinbase(makeAddr("coinbase"));
        vm.prevrandao(uint256(5));
        vm.setBlockhash(99, keccak256("the block before"));
        vm.deal(makeAddr("rich"), 9);

        assertEq(multicall.getBlockNumber(), 100);
        assertEq(multicall.getCurrentBlockTimestamp(), 1_000_000);
        assertEq(multicall.getBasefee(), 12);
        assertEq(multicall.getChainId(), 421614);
        assertEq(multicall.getCurrentBlockCoinbase(), makeAddr("coinbase"));
        assertEq(multicall.getCurrentBlockDifficulty(), 5);
        assertEq(multicall.getCurrentBlockGasLimit(), block.gaslimit);
        assertEq(multicall.getBlockHash(99), keccak256("the block before"));
        assertEq(multicall.getLastBlockHash(), keccak256("the block before"));
        assertEq(multicall.getEthBalance(makeAddr("rich")), 9);
    }
}
