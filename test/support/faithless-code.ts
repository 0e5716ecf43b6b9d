/**
 * The code of an account whose `isValidSignature` accepts everything until slot 0 is set, and then consumes all gas.
 */
export const FAITHLESS_CODE = '0x5f54601357631626ba7e60e01b5f5260205ff35bfe'
