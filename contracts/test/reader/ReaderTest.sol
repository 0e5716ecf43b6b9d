// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IServiceReader} from "../../src/interfaces/IServiceReader.sol";
import {ServiceReader} from "../../src/reader/ServiceReader.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @title A reader over the whole protocol
abstract contract ReaderTest is ProtocolTest {
    uint256 internal constant NOBODY = 99;

    ServiceReader internal reader;
    IServiceReader.Contracts internal contracts;

    function setUp() public virtual override {
        super.setUp();
        reader = new ServiceReader();
        address quoter = deployCode(
            "../node_modules/@uniswap/v3-periphery/artifacts/contracts/lens/QuoterV2.sol/QuoterV2.json",
            abi.encode(market.factory(), address(1))
        );
        contracts = IServiceReader.Contracts({
            agentRegistry: address(agents),
            vaultTrackRegistry: address(tracks),
            tokenRegistry: address(tokens),
            priceOracle: address(oracle),
            tradeRouter: address(router),
            tradeRouterLens: address(lens),
            positionManager: address(positions),
            allocationManager: address(allocations),
            swapAdapter: address(adapter),
            quoter: quoter,
            usdc: address(usdc)
        });
    }

    /// @dev The reader passes on what the contract itself answers.
    function _same(IServiceReader.Answer memory answer, address target, bytes memory call) internal view {
        (bool success, bytes memory data) = target.staticcall(call);
        assertTrue(success && answer.success, "no answer");
        assertEq(answer.data, data);
    }
}
