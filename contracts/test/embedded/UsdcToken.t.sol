// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {IERC3009, IERC3009Cancel} from "@openzeppelin/contracts/interfaces/draft-IERC3009.sol";
import {Test} from "forge-std/Test.sol";
import {SmartAccount} from "../../src/embedded/SmartAccount.sol";
import {UsdcToken} from "../../src/embedded/UsdcToken.sol";

contract UsdcTokenTest is Test {
    uint256 private constant PAYER_KEY = 0xA11CE;
    bytes32 private constant NONCE = keccak256("a random nonce");

    UsdcToken private usdc;
    address private payer = vm.addr(PAYER_KEY);
    address private payee = makeAddr("payee");

    function setUp() public {
        vm.warp(1_000_000);
        usdc = new UsdcToken(address(this), "USD Coin", "USDC", "2");
        usdc.mint(payer, 100e6);
    }

    function test_IsTheUsdcThatPayersKnow() public view {
        assertEq(usdc.name(), "USD Coin");
        assertEq(usdc.symbol(), "USDC");
        assertEq(usdc.decimals(), 6);
        assertEq(usdc.version(), "2");
        assertEq(
            usdc.DOMAIN_SEPARATOR(),
            keccak256(
                abi.encode(
                    keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                    keccak256("USD Coin"),
                    keccak256("2"),
                    block.chainid,
                    address(usdc)
                )
            )
        );
    }

    /// The values of the USDC of the public chains.
    function test_TypehashesAreThoseOfThePublicChains() public view {
        assertEq(
            usdc.TRANSFER_WITH_AUTHORIZATION_TYPEHASH(),
            0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267
        );
        assertEq(
            usdc.RECEIVE_WITH_AUTHORIZATION_TYPEHASH(),
            0xd099cc98ef71107a616c4f0f941f04c322d8e254fe26b3c6668db87aae413de8
        );
        assertEq(
            usdc.CANCEL_AUTHORIZATION_TYPEHASH(), 0x158b0a9edf7a828aad02f63cd515c68ef2f50ba807396f6d12842833a1597429
        );
        assertEq(usdc.PERMIT_TYPEHASH(), 0x6e71edae12b1b97f4d1f60370fef10105fa2faae0126114a169c64845d6126c9);
    }

    function test_OnlyTheMinterMints() public {
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, payer, usdc.MINTER_ROLE())
        );
        vm.prank(payer);
        usdc.mint(payer, 1);
    }

    function testFuzz_TransfersByAuthorization(uint256 value, bytes32 nonce) public {
        value = bound(value, 0, 100e6);
        bytes memory signature = _signTransfer(PAYER_KEY, payer, payee, value, 0, block.timestamp + 60, nonce);

        vm.expectEmit(address(usdc));
        emit IERC3009.AuthorizationUsed(payer, nonce);
        usdc.transferWithAuthorization(payer, payee, value, 0, block.timestamp + 60, nonce, signature);

        assertEq(usdc.balanceOf(payee), value);
        assertEq(usdc.balanceOf(payer), 100e6 - value);
        assertTrue(usdc.authorizationState(payer, nonce));
    }

    function test_TransfersByAuthorizationInThreeParts() public {
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(PAYER_KEY, _digest(_transferHash(payer, payee, 5e6, 0, block.timestamp + 60, NONCE)));
        usdc.transferWithAuthorization(payer, payee, 5e6, 0, block.timestamp + 60, NONCE, v, r, s);
        assertEq(usdc.balanceOf(payee), 5e6);
    }

    function test_AnAuthorizationIsUsedOnce() public {
        bytes memory signature = _signTransfer(PAYER_KEY, payer, payee, 1e6, 0, block.timestamp + 60, NONCE);
        usdc.transferWithAuthorization(payer, payee, 1e6, 0, block.timestamp + 60, NONCE, signature);

        vm.expectRevert(abi.encodeWithSelector(UsdcToken.AuthorizationUsedOrCanceled.selector, payer, NONCE));
        usdc.transferWithAuthorization(payer, payee, 1e6, 0, block.timestamp + 60, NONCE, signature);
    }

    function test_AnAuthorizationHoldsStrictlyBetweenItsBounds() public {
        uint256 start = block.timestamp;
        bytes memory signature = _signTransfer(PAYER_KEY, payer, payee, 1e6, start, start + 10, NONCE);

        vm.expectRevert(abi.encodeWithSelector(UsdcToken.AuthorizationNotYetValid.selector, start, start));
        usdc.transferWithAuthorization(payer, payee, 1e6, start, start + 10, NONCE, signature);

        vm.warp(start + 10);
        vm.expectRevert(abi.encodeWithSelector(UsdcToken.AuthorizationExpired.selector, start + 10, start + 10));
        usdc.transferWithAuthorization(payer, payee, 1e6, start, start + 10, NONCE, signature);

        vm.warp(start + 9);
        usdc.transferWithAuthorization(payer, payee, 1e6, start, start + 10, NONCE, signature);
        assertEq(usdc.balanceOf(payee), 1e6);
    }

    function test_RefusesAnAuthorizationByAnotherKeyOrForAnotherAmount() public {
        bytes memory foreign = _signTransfer(0xB0B, payer, payee, 1e6, 0, block.timestamp + 60, NONCE);
        vm.expectRevert(abi.encodeWithSelector(UsdcToken.InvalidSignature.selector, payer));
        usdc.transferWithAuthorization(payer, payee, 1e6, 0, block.timestamp + 60, NONCE, foreign);

        bytes memory genuine = _signTransfer(PAYER_KEY, payer, payee, 1e6, 0, block.timestamp + 60, NONCE);
        vm.expectRevert(abi.encodeWithSelector(UsdcToken.InvalidSignature.selector, payer));
        usdc.transferWithAuthorization(payer, payee, 2e6, 0, block.timestamp + 60, NONCE, genuine);
        assertFalse(usdc.authorizationState(payer, NONCE));
    }

    function test_AnAuthorizationBeyondTheBalanceIsNotSpent() public {
        bytes memory signature = _signTransfer(PAYER_KEY, payer, payee, 101e6, 0, block.timestamp + 60, NONCE);
        vm.expectRevert(abi.encodeWithSelector(IERC20Errors.ERC20InsufficientBalance.selector, payer, 100e6, 101e6));
        usdc.transferWithAuthorization(payer, payee, 101e6, 0, block.timestamp + 60, NONCE, signature);
        assertFalse(usdc.authorizationState(payer, NONCE));
    }

    function test_AContractPaysByAuthorization() public {
        SmartAccount account = new SmartAccount(payer);
        usdc.mint(address(account), 10e6);
        bytes32 digest = _digest(_transferHash(address(account), payee, 4e6, 0, block.timestamp + 60, NONCE));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(PAYER_KEY, digest);

        usdc.transferWithAuthorization(address(account), payee, 4e6, 0, block.timestamp + 60, NONCE, v, r, s);
        assertEq(usdc.balanceOf(payee), 4e6);
    }

    function test_AnAccountWithDelegatedCodePaysWithItsOwnKey() public {
        vm.etch(payer, hex"00");
        bytes memory signature = _signTransfer(PAYER_KEY, payer, payee, 1e6, 0, block.timestamp + 60, NONCE);
        usdc.transferWithAuthorization(payer, payee, 1e6, 0, block.timestamp + 60, NONCE, signature);
        assertEq(usdc.balanceOf(payee), 1e6);
    }

    function test_OnlyThePayeeReceivesByAuthorization() public {
        bytes32 structHash = keccak256(
            abi.encode(usdc.RECEIVE_WITH_AUTHORIZATION_TYPEHASH(), payer, payee, 3e6, 0, block.timestamp + 60, NONCE)
        );
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(PAYER_KEY, _digest(structHash));

        vm.expectRevert(abi.encodeWithSelector(UsdcToken.CallerNotPayee.selector, address(this), payee));
        usdc.receiveWithAuthorization(payer, payee, 3e6, 0, block.timestamp + 60, NONCE, v, r, s);

        vm.prank(payee);
        usdc.receiveWithAuthorization(payer, payee, 3e6, 0, block.timestamp + 60, NONCE, v, r, s);
        assertEq(usdc.balanceOf(payee), 3e6);

        vm.expectRevert(abi.encodeWithSelector(UsdcToken.AuthorizationUsedOrCanceled.selector, payer, NONCE));
        vm.prank(payee);
        usdc.receiveWithAuthorization(payer, payee, 3e6, 0, block.timestamp + 60, NONCE, abi.encodePacked(r, s, v));
    }

    function test_ACanceledAuthorizationDoesNotPay() public {
        bytes32 digest = _digest(keccak256(abi.encode(usdc.CANCEL_AUTHORIZATION_TYPEHASH(), payer, NONCE)));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(PAYER_KEY, digest);

        vm.expectRevert(abi.encodeWithSelector(UsdcToken.InvalidSignature.selector, payee));
        usdc.cancelAuthorization(payee, NONCE, v, r, s);

        vm.expectEmit(address(usdc));
        emit IERC3009Cancel.AuthorizationCanceled(payer, NONCE);
        usdc.cancelAuthorization(payer, NONCE, v, r, s);

        vm.expectRevert(abi.encodeWithSelector(UsdcToken.AuthorizationUsedOrCanceled.selector, payer, NONCE));
        usdc.cancelAuthorization(payer, NONCE, abi.encodePacked(r, s, v));

        bytes memory signature = _signTransfer(PAYER_KEY, payer, payee, 1e6, 0, block.timestamp + 60, NONCE);
        vm.expectRevert(abi.encodeWithSelector(UsdcToken.AuthorizationUsedOrCanceled.selector, payer, NONCE));
        usdc.transferWithAuthorization(payer, payee, 1e6, 0, block.timestamp + 60, NONCE, signature);
    }

    function test_PermitsASpender() public {
        uint256 deadline = block.timestamp;
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(PAYER_KEY, _permitDigest(payer, payee, 7e6, 0, deadline));
        usdc.permit(payer, payee, 7e6, deadline, v, r, s);
        assertEq(usdc.allowance(payer, payee), 7e6);
        assertEq(usdc.nonces(payer), 1);

        vm.expectRevert(abi.encodeWithSelector(UsdcToken.InvalidSignature.selector, payer));
        usdc.permit(payer, payee, 7e6, deadline, v, r, s);
        assertEq(usdc.nonces(payer), 1);

        (v, r, s) = vm.sign(PAYER_KEY, _permitDigest(payer, payee, 9e6, 1, deadline));
        usdc.permit(payer, payee, 9e6, deadline, abi.encodePacked(r, s, v));
        assertEq(usdc.allowance(payer, payee), 9e6);
    }

    function test_RefusesAnExpiredPermit() public {
        uint256 deadline = block.timestamp - 1;
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(PAYER_KEY, _permitDigest(payer, payee, 7e6, 0, deadline));
        vm.expectRevert(abi.encodeWithSelector(UsdcToken.PermitExpired.selector, deadline, block.timestamp));
        usdc.permit(payer, payee, 7e6, deadline, v, r, s);
    }

    function _permitDigest(address owner, address spender, uint256 value, uint256 nonce, uint256 deadline)
        private
        view
        returns (bytes32)
    {
        return _digest(keccak256(abi.encode(usdc.PERMIT_TYPEHASH(), owner, spender, value, nonce, deadline)));
    }

    function _signTransfer(
        uint256 key,
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce
    ) private view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(key, _digest(_transferHash(from, to, value, validAfter, validBefore, nonce)));
        return abi.encodePacked(r, s, v);
    }

    function _transferHash(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce
    ) private view returns (bytes32) {
        return keccak256(
            abi.encode(usdc.TRANSFER_WITH_AUTHORIZATION_TYPEHASH(), from, to, value, validAfter, validBefore, nonce)
        );
    }

    function _digest(bytes32 structHash) private view returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", usdc.DOMAIN_SEPARATOR(), structHash));
    }
}
