// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {Test} from "forge-std/Test.sol";
import {Multicall3} from "../../src/embedded/Multicall3.sol";
import {WETH9} from "../../src/embedded/WETH9.sol";

contract WETH9Test is Test {
    WETH9 private weth = new WETH9();
    address private holder = makeAddr("holder");

    function testFuzz_WrapsAndUnwrapsEtherOneToOne(uint96 amount, uint96 back) public {
        back = uint96(bound(back, 0, amount));
        vm.deal(holder, amount);

        vm.expectEmit(address(weth));
        emit WETH9.Deposit(holder, amount);
        vm.prank(holder);
        (bool wrapped,) = address(weth).call{value: amount}("");
        assertTrue(wrapped);
        assertEq(weth.balanceOf(holder), amount);

        vm.expectEmit(address(weth));
        emit WETH9.Withdrawal(holder, back);
        vm.prank(holder);
        weth.withdraw(back);
        assertEq(weth.balanceOf(holder), amount - back);
        assertEq(holder.balance, back);
        assertEq(address(weth).balance, weth.totalSupply());
    }

    function test_RefusesToUnwrapMoreThanIsHeld() public {
        vm.expectRevert(abi.encodeWithSelector(IERC20Errors.ERC20InsufficientBalance.selector, holder, 0, 1));
        vm.prank(holder);
        weth.withdraw(1);
    }

    function test_RefusesToUnwrapForAnAccountThatTakesNoEther() public {
        address closed = address(new Multicall3());
        vm.deal(closed, 1);
        vm.startPrank(closed);
        weth.deposit{value: 1}();
        vm.expectRevert(abi.encodeWithSelector(WETH9.EtherTransferFailed.selector, closed, 1));
        weth.withdraw(1);
    }
}
