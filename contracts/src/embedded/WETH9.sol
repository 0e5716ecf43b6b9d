// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title Wrapped ether of the embedded chain
/// @notice Uniswap's periphery wants one at construction; nothing is traded against it here.
contract WETH9 is ERC20 {
    event Deposit(address indexed account, uint256 amount);
    event Withdrawal(address indexed account, uint256 amount);

    error EtherTransferFailed(address account, uint256 amount);

    constructor() ERC20("Wrapped Ether", "WETH") {}

    receive() external payable {
        deposit();
    }

    /// @notice Wraps the ether that comes along.
    function deposit() public payable {
        _mint(msg.sender, msg.value);
        emit Deposit(msg.sender, msg.value);
    }

    /// @notice Unwraps `amount` and sends the ether to the caller.
    function withdraw(uint256 amount) external {
        _burn(msg.sender, amount);
        emit Withdrawal(msg.sender, amount);

        (bool sent,) = msg.sender.call{value: amount}("");
        if (!sent) revert EtherTransferFailed(msg.sender, amount);
    }
}
