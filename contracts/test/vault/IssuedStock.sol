// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ScaledStockToken} from "../../src/embedded/ScaledStockToken.sol";
import {StockIssuer} from "../../src/embedded/StockIssuer.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {ITokenRegistry} from "../../src/interfaces/ITokenRegistry.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice A vault that trades a stock token whose issuer can pause, block and burn
abstract contract IssuedStock is ProtocolTest {
    uint256 internal constant WHOLE_SHARE = 1e12;

    StockIssuer internal issuer;
    /// @dev The issued token, once as itself and once as the type in which the tests of the router speak.
    ScaledStockToken internal issued;
    StockToken internal stock;

    function setUp() public virtual override {
        super.setUp();
        issuer = new StockIssuer(address(new ScaledStockToken()), address(this));
        issued = ScaledStockToken(issuer.deploy("NVIDIA Robinhood Token", "NVDA"));
        stock = StockToken(address(issued));
        // The pool's stock is minted by its maker, so the maker is the issuer as well.
        issuer.transferOwnership(address(market));
        _list(stock, NVDA_PRICE);
        vm.prank(admin);
        tokens.describeToken(
            address(issued),
            ITokenRegistry.TokenDescription(
                ITokenRegistry.TokenKind.ScaledUI, ITokenRegistry.TokenSession.UsEquity24x5, 15, address(issuer)
            )
        );
        skip(1);
    }

    modifier asIssuer() {
        vm.startPrank(address(market));
        _;
        vm.stopPrank();
    }

    /// @dev The vault holds the stock for `amount` of USDC, as after a trade.
    function _hold(uint256 amount) internal {
        uint256 bought = amount * 100 * 1e18 / NVDA_PRICE;
        vm.prank(address(market));
        issued.mint(address(vault), bought);
        vm.startPrank(address(router));
        vault.pullAssetsForTrade(address(market), amount);
        vault.recordReceived(address(issued), bought);
        vm.stopPrank();
    }

    /// @dev The multiplier changes at a time, which may be now; nothing else happens then.
    function _schedule(uint256 multiplier, uint256 effectiveAt) internal asIssuer {
        issued.updateMultiplier(multiplier, effectiveAt);
    }

    function _pause(bool paused) internal asIssuer {
        issuer.setPaused(paused);
    }

    function _pauseToken(bool paused) internal asIssuer {
        issued.setTokenPaused(paused);
    }

    function _block(address account, bool blocked) internal asIssuer {
        issuer.setBlocked(account, blocked);
    }

    function _burn(address from, uint256 amount) internal asIssuer {
        issued.adminBurn(from, amount);
    }
}
