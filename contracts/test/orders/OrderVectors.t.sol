// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {OrderBook} from "../../src/OrderBook.sol";
import {IOrderBook} from "../../src/interfaces/IOrderBook.sol";
import {OrderTest} from "./OrderTest.sol";

/// @notice The digests that test/unit/order-typed-data.test.ts computes of the same messages
contract OrderVectorsTest is OrderTest {
    bytes32 private constant ORDER_ID = 0x84245de287973ce74ee422fe1dfff9a9e41c0b7e7bc6898305541b42d5b95ca1;
    bytes32 private constant CANCELLATION = 0x0ad9caabd40fe73a7ede8f84b45c4450f297f599aeb0325e2948a275633001c1;

    function test_TheContractComputesTheDigestsOfTheTypescript() public {
        deployCodeTo("OrderBook.sol:OrderBook", abi.encode(address(agents)), address(0xb00c));
        OrderBook fixedBook = OrderBook(address(0xb00c));
        IOrderBook.Order memory order;
        order.agentId = 7;
        order.token = address(0xaa);
        order.usdcAmount = 250 * USDC;
        order.exits = _ladder(_stop(-800, 10_000));
        order.maxSlippageBps = 100;
        order.condition = BELOW;
        order.price = 120 * USD;
        (order.validAfter, order.validUntil) = (1_800_000_000, 1_800_086_400);
        (order.parts, order.interval, order.key) = (10, 900, 3);
        (order.deadline, order.nonce) = (1_799_999_999, 5);
        assertEq(fixedBook.hashOrder(order), ORDER_ID);
        assertEq(fixedBook.hashCancelOrder(IOrderBook.CancelOrderIntent(7, ORDER_ID, 1_799_999_999, 6)), CANCELLATION);
    }
}
