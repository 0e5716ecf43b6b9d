// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title What is called of Chainlink's verifier of signed reports ("VerifierProxy 2.0.0")
interface IVerifierProxy {
    /// @notice Returns the report inside `payload`, or reverts. It checks the signatures: no feed, no expiry, no replay.
    /// @param parameterPayload The ABI-encoded address of the token that pays the fee, where there is a fee manager
    function verify(bytes calldata payload, bytes calldata parameterPayload) external payable returns (bytes memory);
    function s_feeManager() external view returns (address);
}
